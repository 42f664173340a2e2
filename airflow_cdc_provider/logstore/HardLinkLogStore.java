package airflow_cdc_provider.logstore;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log in a folder for any number of drivers: a commit is written beside the log under a name of its own, then
 * linked to its version. link(2) fails where the name is taken, over NFS too. (Delta's own log store looks whether the
 * file is there and then renames, which on a local file system replaces whatever came between.)
 *
 * Compiled by the Janino that Spark brings, which knows no type arguments: hence the casts.
 */
public final class HardLinkLogStore extends HadoopFileSystemLogStore {
    public HardLinkLogStore(Configuration configuration) {
        super(configuration);
    }

    /** Raises FileAlreadyExistsException where the version is taken. */
    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
        java.nio.file.Path file = Paths.get(path.toUri().getPath(), new String[0]);
        java.nio.file.Path unnamed = file.resolveSibling("." + path.getName() + "." + UUID.randomUUID() + ".tmp");
        try {
            writeDurably(unnamed, actions);
            if (overwrite.booleanValue()) {
                replace(unnamed, file);
            } else {
                name(unnamed, file);
            }
            sync(file.getParent());
        } finally {
            Files.deleteIfExists(unnamed);
        }
    }

    /** Of a checkpoint, which is written past this class: Delta then writes it beside, too, and renames it. */
    public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
        return Boolean.TRUE;
    }

    private static void name(java.nio.file.Path unnamed, java.nio.file.Path file) throws IOException {
        try {
            Files.createLink(file, unnamed);
        } catch (FileAlreadyExistsException taken) {
            if (!Files.isSameFile(file, unnamed)) { // else NFS has done it and lost its answer
                throw taken;
            }
        }
    }

    /** Hadoop's file system may have left a checksum of the old content, by which the new one would be damaged. */
    private static void replace(java.nio.file.Path unnamed, java.nio.file.Path file) throws IOException {
        Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
        Files.move(unnamed, file, new StandardCopyOption[] {StandardCopyOption.ATOMIC_MOVE});
    }

    private static void writeDurably(java.nio.file.Path file, Iterator lines) throws IOException {
        FileChannel channel = open(file, new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
        try {
            while (lines.hasNext()) {
                ByteBuffer line = ByteBuffer.wrap(((String) lines.next() + "\n").getBytes(StandardCharsets.UTF_8));
                while (line.hasRemaining()) {
                    channel.write(line);
                }
            }
            channel.force(true);
        } finally {
            channel.close();
        }
    }

    private static void sync(java.nio.file.Path folder) throws IOException {
        FileChannel channel = open(folder, new OpenOption[] {StandardOpenOption.READ});
        try {
            channel.force(true);
        } finally {
            channel.close();
        }
    }

    private static FileChannel open(java.nio.file.Path path, OpenOption[] options) throws IOException {
        return FileChannel.open(path, options);
    }
}

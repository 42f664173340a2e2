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
 * Delta log store for a folder with concurrent drivers: a commit is written to a temporary file next to the log, then
 * linked to the name of its version. link(2) fails if the name exists, over NFS too. (Delta's own log store checks
 * whether the file exists and then renames, which on a local file system replaces a commit made in between.)
 *
 * Compiled with Spark's Janino, which does not support generics: hence the casts.
 */
public final class HardLinkLogStore extends HadoopFileSystemLogStore {
    public HardLinkLogStore(Configuration configuration) {
        super(configuration);
    }

    /** Raises FileAlreadyExistsException if the version exists. */
    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
        java.nio.file.Path file = Paths.get(path.toUri().getPath(), new String[0]);
        java.nio.file.Path temporary = file.resolveSibling("." + path.getName() + "." + UUID.randomUUID() + ".tmp");
        try {
            writeDurably(temporary, actions);
            if (overwrite.booleanValue()) {
                replace(temporary, file);
            } else {
                name(temporary, file);
            }
            sync(file.getParent());
        } finally {
            Files.deleteIfExists(temporary);
        }
    }

    /** True lets Delta write checkpoints, which bypass this class, to a temporary file and rename it. */
    public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
        return Boolean.TRUE;
    }

    private static void name(java.nio.file.Path temporary, java.nio.file.Path file) throws IOException {
        try {
            Files.createLink(file, temporary);
        } catch (FileAlreadyExistsException taken) {
            if (!Files.isSameFile(file, temporary)) { // else NFS created the link and lost its reply
                throw taken;
            }
        }
    }

    /** Deletes Hadoop's checksum file of the old content, with which the new content could not be read. */
    private static void replace(java.nio.file.Path temporary, java.nio.file.Path file) throws IOException {
        Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
        Files.move(temporary, file, new StandardCopyOption[] {StandardCopyOption.ATOMIC_MOVE});
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

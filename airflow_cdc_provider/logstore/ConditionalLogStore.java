package airflow_cdc_provider.logstore;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/**
 * Delta log store on S3 for concurrent drivers: a commit is one PUT with "If-None-Match: *", and the store rejects the
 * second writer of a version. (Delta's own log store checks whether the file exists and then overwrites a commit made
 * in between, and S3A's plain create does the same.)
 *
 * Compiled with Spark's Janino, which does not support generics: hence the casts.
 */
public final class ConditionalLogStore extends S3SingleDriverLogStore {
    private static final String ONLY_IF_NEW = "fs.option.create.conditional.overwrite";

    public ConditionalLogStore(Configuration configuration) {
        super(configuration);
    }

    /** Raises FileAlreadyExistsException if the version exists, even if this call created it and lost the reply. */
    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        FileSystem system = path.getFileSystem(configuration);
        byte[] content = lines(actions);
        FSDataOutputStreamBuilder builder = system.createFile(path).overwrite(false).recursive();
        builder.must(ONLY_IF_NEW, true);
        FSDataOutputStream output = (FSDataOutputStream) builder.build();
        try {
            output.write(content);
        } catch (IOException error) {
            output.abort();
            throw error;
        }
        try {
            output.close();
        } catch (RemoteFileChangedException error) {
            FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
            taken.initCause(error);
            throw taken;
        }
    }

    private static byte[] lines(Iterator actions) {
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            byte[] line = ((String) actions.next() + "\n").getBytes(StandardCharsets.UTF_8);
            lines.write(line, 0, line.length);
        }
        return lines.toByteArray();
    }
}

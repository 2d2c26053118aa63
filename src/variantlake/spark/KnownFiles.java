import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;

/**
 * Reads Parquet files whose paths, sizes and times a log has told: nothing is listed.
 *
 * `spark.read.parquet` asks the file system about every path (0.25 ms each on a local disk, a job
 * of thousands of tasks elsewhere). Here Spark's own index of files finds them in its cache, under
 * one root that does not exist. The root is named by a digest of the files: Spark takes two indexes
 * with the same roots for the same data, and would read one side of a self-join in the place of
 * the other. Paths are taken as they are: no globs, no percent-decoding.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class KnownFiles {
    /** Paths, sizes (bytes) and modification times (milliseconds), in turn, separated by NUL. */
    public Dataset read(SparkSession session, String files, StructType schema) throws Exception {
        String[] parts = files.split("\0", -1);
        Configuration configuration = session.sessionState().newHadoopConf();
        Map systems = new HashMap();
        List found = new ArrayList();
        for (int i = 0; i + 2 < parts.length; i += 3) {
            Path path = new Path(parts[i]);
            String home = path.toUri().getScheme() + "//" + path.toUri().getAuthority();
            FileSystem system = (FileSystem) systems.get(home);
            if (system == null) {
                system = path.getFileSystem(configuration);
                systems.put(home, system);
            }
            found.add(new FileStatus(
                Long.parseLong(parts[i + 1]), false, 1, 128L << 20, Long.parseLong(parts[i + 2]),
                system.makeQualified(path)));
        }
        FileStatus[] statuses = (FileStatus[]) found.toArray(new FileStatus[found.size()]);
        byte[] digest =
            MessageDigest.getInstance("SHA-256").digest(files.getBytes(StandardCharsets.UTF_8));
        Path root = new Path(
            statuses[0].getPath().getParent(), "known-files-" + new BigInteger(1, digest).toString(16));
        List roots = new ArrayList();
        roots.add(root);
        scala.collection.immutable.Map none =
            (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
        // No partition columns from the names of folders: the log has their values.
        scala.collection.immutable.Map options =
            (scala.collection.immutable.Map) none.updated("recursiveFileLookup", "true");
        InMemoryFileIndex index = new InMemoryFileIndex(
            session,
            (scala.collection.immutable.Seq)
                scala.jdk.javaapi.CollectionConverters.asScala(roots).toSeq(),
            options, scala.Option.apply(schema), new Known(statuses),
            scala.Option.empty(), scala.Option.empty());
        return session.baseRelationToDataFrame(new HadoopFsRelation(
            index, new StructType(), schema, scala.Option.empty(), new ParquetFileFormat(), none,
            session));
    }

    public static class Known extends FileStatusCache {
        private final FileStatus[] files;

        public Known(FileStatus[] files) {
            this.files = files;
        }

        public scala.Option getLeafFiles(Path path) {
            return scala.Option.apply(files);
        }

        public void putLeafFiles(Path path, FileStatus[] found) {
        }

        public void invalidateAll() {
        }
    }
}

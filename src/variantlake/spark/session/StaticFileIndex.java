import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads Parquet files whose paths, sizes and times a log has told: nothing is listed.
 *
 * `spark.read.parquet` asks the file system about every path (0.25 ms each on a local disk, a job
 * of thousands of tasks elsewhere), decodes globs, leaves out names that start with `_` or `.`, and
 * makes columns of the names of folders. Here an index of our own gives Spark the files as they
 * are, and with each file its constants: the values of columns that are the same in all of its rows
 * (the partition columns, by the log), so that one scan reads the files of any number of partitions.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class StaticFileIndex {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** By scheme and host: they are asked for nothing but how a path is written. */
    private static final Map SYSTEMS = new ConcurrentHashMap();

    /**
     * @param files JSON: `paths`, `sizes` (bytes), `times` (milliseconds), for each of the constants
     *     one array in `constants`, of texts or nulls, `one_task`: whether one task reads them,
     *     `label`: what plans call the scan, and `skipped`: how many files, and how many bytes, of
     *     the table are not read, for Spark's pages
     * @param schema JSON of what to read of the files
     * @param constants JSON of the columns that files have constants for, cast from text as Spark
     *     does
     * @param zone the time zone of these casts
     * @param where JSON of conditions as SQL, all of which the rows fulfil
     * @param columns JSON of the columns of the result as SQL
     */
    public Dataset read(
            SparkSession session, String files, String schema, String constants, String zone,
            String where, String columns) throws Exception {
        StructType read = (StructType) DataType$.MODULE$.fromJson(schema);
        StructType fixed = (StructType) DataType$.MODULE$.fromJson(constants);
        Map known = (Map) JSON.readValue(files, Map.class);
        Index index = new Index(session, known, fixed, zone);
        String identity = files + "\0" + zone + "\0" + schema + "\0" + constants;
        byte[] digest = MessageDigest.getInstance("SHA-256")
            .digest(identity.getBytes(StandardCharsets.UTF_8));
        index.identity = new BigInteger(1, digest).toString(16);
        LogicalPlan plan = LogicalRelation$.MODULE$.apply(
            new Files(
                (String) known.get("label"), new Skipped((List) known.get("skipped")), index, fixed,
                read, scala.Option.empty(),
                new ParquetFileFormat(),
                (scala.collection.immutable.Map)
                    scala.collection.immutable.Map$.MODULE$.empty(),
                session),
            false);
        // One partition for sure: what is above needs no exchange of rows.
        if (Boolean.TRUE.equals(known.get("one_task"))) plan = new Repartition(1, false, plan);
        scala.Option before = SparkSession$.MODULE$.getActiveSession();
        SparkSession$.MODULE$.setActiveSession(session); // whose settings the parser follows
        try {
            ParserInterface parser = session.sessionState().sqlParser();
            Iterator conditions = ((List) JSON.readValue(where, List.class)).iterator();
            while (conditions.hasNext()) {
                plan = new Filter(parser.parseExpression((String) conditions.next()), plan);
            }
            List items = new ArrayList();
            Iterator texts = ((List) JSON.readValue(columns, List.class)).iterator();
            while (texts.hasNext()) items.add(parser.parseExpression((String) texts.next()));
            return Dataset$.MODULE$.ofRows(session, new Project(seq(items), plan));
        } finally {
            if (before.isDefined()) {
                SparkSession$.MODULE$.setActiveSession((SparkSession) before.get());
            } else {
                SparkSession$.MODULE$.clearActiveSession();
            }
        }
    }

    /**
     * Deleted rows as bits: for each file its number (int), the number of words (int), and the
     * words (long), little-endian; bit i of word w is row 64 * w + i.
     */
    public Dataset deleted(SparkSession session, byte[] vectors, StructType schema) {
        ByteBuffer buffer = ByteBuffer.wrap(vectors).order(ByteOrder.LITTLE_ENDIAN);
        List rows = new ArrayList();
        while (buffer.hasRemaining()) {
            Integer file = Integer.valueOf(buffer.getInt());
            Long[] words = new Long[buffer.getInt()];
            for (int i = 0; i < words.length; i++) {
                words[i] = Long.valueOf(buffer.getLong());
            }
            rows.add(RowFactory.create(new Object[] {file, words}));
        }
        return session.createDataFrame(rows, schema);
    }

    static scala.collection.immutable.Seq seq(List items) {
        return (scala.collection.immutable.Seq)
            scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }

    /** Say how many row groups of a table's files are read and skipped, at its first scan here. */
    public void countRowGroups(Dataset frame, long read, long skipped) {
        LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) frame).queryExecution().analyzed();
        scala.collection.Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            Object leaf = leaves.next();
            if (!(leaf instanceof LogicalRelation)) continue;
            Object relation = ((LogicalRelation) leaf).relation();
            if (relation instanceof Files) {
                ((Files) relation).skipped.count(read, skipped);
                return;
            }
        }
    }

    /** What of a table a scan does not read; copies of a relation share it. */
    private static class Skipped {
        final long files;
        final long bytes;
        /** Those that are read, and those that are not; null until somebody has counted them. */
        private long[] rowGroups;
        private Scan waiting;
        private String execution;

        Skipped(List numbers) {
            files = ((Number) numbers.get(0)).longValue();
            bytes = ((Number) numbers.get(1)).longValue();
        }

        /** Footers are read while Spark plans a query, which may have begun. */
        synchronized void count(long read, long skipped) {
            rowGroups = new long[] {read, skipped};
            if (waiting != null) waiting.showRowGroups(rowGroups, execution);
            waiting = null;
        }

        synchronized void begin(Scan scan, String query) {
            if (rowGroups != null) {
                scan.showRowGroups(rowGroups, query);
            } else {
                waiting = scan;
                execution = query;
            }
        }
    }

    /** A relation that plans and Spark's pages call by a label of ours, in the place of `parquet`. */
    public static class Files extends HadoopFsRelation {
        private static final int ASKING_FRAMES = 4;
        private final String label;
        private final Skipped skipped;

        public Files(
                String label, Skipped skipped, FileIndex location, StructType constants, StructType data,
                scala.Option buckets, FileFormat format, scala.collection.immutable.Map options,
                org.apache.spark.sql.SparkSession session) {
            super(location, constants, data, buckets, format, options, session);
            this.label = label;
            this.skipped = skipped;
        }

        /** Spark's rules copy it to read fewer columns. */
        public HadoopFsRelation copy(
                FileIndex location, StructType constants, StructType data, scala.Option buckets,
                FileFormat format, scala.collection.immutable.Map options,
                org.apache.spark.sql.SparkSession session) {
            return new Files(
                label, skipped, location, constants, data, buckets, format, options, session);
        }

        /**
         * The label; but `parquet` for the rule of Spark that pushes conditions on fields of
         * structs into files: it asks by this text which sources take them.
         */
        public String toString() {
            StackTraceElement[] callers = new Throwable().getStackTrace();
            for (int i = 1; i < callers.length && i <= ASKING_FRAMES; i++) {
                if (callers[i].getMethodName().equals("supportNestedPredicatePushdown")) {
                    return super.toString();
                }
            }
            return label;
        }
    }

    /** What gives our scans their metrics, for the planner of each session that has the rule. */
    public scala.Function1 strategies() {
        return new Strategies();
    }

    public static class Strategies extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) {
            return new Scans();
        }
    }

    /** Spark's own plan for a scan of `Files`, whose node in Spark's pages tells what was skipped. */
    public static class Scans extends SparkStrategy {
        public scala.collection.immutable.Seq apply(LogicalPlan plan) {
            List made = new ArrayList();
            try {
                if (isOurs(plan)) {
                    scala.collection.Iterator found =
                        FileSourceStrategy$.MODULE$.apply(plan).iterator();
                    while (found.hasNext()) made.add(measured((SparkPlan) found.next()));
                }
            } catch (Throwable error) {
                made.clear(); // then Spark plans it
            }
            return seq(made);
        }

        private static boolean isOurs(LogicalPlan plan) {
            while (plan instanceof Project || plan instanceof Filter) {
                plan = (LogicalPlan) plan.children().head();
            }
            return plan instanceof LogicalRelation
                && ((LogicalRelation) plan).relation() instanceof Files;
        }

        private static SparkPlan measured(SparkPlan plan) {
            if (plan.getClass() == FileSourceScanExec.class) {
                FileSourceScanExec scan = (FileSourceScanExec) plan;
                return new Scan(
                    scan.relation(), scan.stream(), scan.output(), scan.requiredSchema(),
                    scan.partitionFilters(), scan.optionalBucketSet(),
                    scan.optionalNumCoalescedBuckets(), scan.dataFilters(), scan.tableIdentifier(),
                    scan.disableBucketedScan() /*4.3 , scan.markedForSingleTaskExecution() 4.3*/);
            }
            List children = new ArrayList();
            for (int i = 0; i < plan.children().size(); i++) {
                children.add(measured((SparkPlan) plan.children().apply(i)));
            }
            return (SparkPlan) plan.withNewChildren(seq(children));
        }
    }

    /** Spark makes others of it by its constructor; a task gets Spark's own, whose class it knows. */
    public static class Scan extends FileSourceScanExec {
        private transient scala.collection.immutable.Map own;
        private transient scala.collection.immutable.Map every;

        public Scan(
                HadoopFsRelation relation, scala.Option stream,
                scala.collection.immutable.Seq output, StructType schema,
                scala.collection.immutable.Seq partitionFilters, scala.Option buckets,
                scala.Option coalesced, scala.collection.immutable.Seq dataFilters,
                scala.Option table, boolean bucketless /*4.3 , boolean single 4.3*/) {
            super(
                relation, stream, output, schema, partitionFilters, buckets, coalesced, dataFilters,
                table, bucketless /*4.3 , single 4.3*/);
        }

        /** What the driver knows: how much is read, by Spark, and what is skipped. */
        public scala.collection.immutable.Map driverMetrics() {
            if (own == null) {
                scala.collection.immutable.Map all = super.driverMetrics();
                try {
                    all = with(all, "skippedFiles", SQLMetrics$.MODULE$.createMetric(
                        sparkContext(), "number of files skipped"));
                    all = with(all, "skippedBytes", SQLMetrics$.MODULE$.createSizeMetric(
                        sparkContext(), "size of files skipped", 0L));
                } catch (Throwable error) {
                    // Spark's pages show less: no query fails for them.
                }
                own = all;
            }
            return own;
        }

        /** Spark has set all to zero since the plan was made. */
        public void sendDriverMetrics() {
            Skipped skipped = ((Files) relation()).skipped;
            try {
                measured("skippedFiles", skipped.files);
                measured("skippedBytes", skipped.bytes);
            } catch (Throwable error) {
                // as above
            }
            super.sendDriverMetrics();
            try {
                skipped.begin(this, sparkContext().getLocalProperty("spark.sql.execution.id"));
            } catch (Throwable error) {
                // as above
            }
        }

        /** Those of row groups too, which Spark does not send: they may not be counted by then. */
        public scala.collection.immutable.Map metrics() {
            if (every == null) {
                scala.collection.immutable.Map all = super.metrics();
                try {
                    all = with(all, "rowGroups", SQLMetrics$.MODULE$.createMetric(
                        sparkContext(), "number of row groups read"));
                    all = with(all, "skippedRowGroups", SQLMetrics$.MODULE$.createMetric(
                        sparkContext(), "number of row groups skipped"));
                } catch (Throwable error) {
                    // as above
                }
                every = all;
            }
            return every;
        }

        private static scala.collection.immutable.Map with(
                scala.collection.immutable.Map all, String name, SQLMetric metric) {
            return (scala.collection.immutable.Map) all.updated(name, metric);
        }

        void showRowGroups(long[] numbers, String execution) {
            List counted = new ArrayList();
            counted.add(measured("rowGroups", numbers[0]));
            counted.add(measured("skippedRowGroups", numbers[1]));
            SQLMetrics$.MODULE$.postDriverMetricUpdates(sparkContext(), execution, seq(counted));
        }

        private SQLMetric measured(String name, long value) {
            SQLMetric metric = (SQLMetric) metrics().apply(name);
            metric.set(value);
            return metric;
        }

        /** Spark leaves a plan as it is if its new children equal the old ones. */
        public boolean equals(Object other) {
            return other instanceof Scan && super.equals(other);
        }

        public boolean canEqual(Object other) {
            return other instanceof Scan;
        }

        public int hashCode() {
            return super.hashCode();
        }

        protected Object writeReplace() {
            return copy(
                relation(), stream(), output(), requiredSchema(), partitionFilters(),
                optionalBucketSet(), optionalNumCoalescedBuckets(), dataFilters(),
                tableIdentifier(), disableBucketedScan() /*4.3 , markedForSingleTaskExecution() 4.3*/);
        }
    }

    /** Files in groups of equal constants; Spark calls the constants partition values. */
    public static class Index implements FileIndex {
        public String identity = "";
        private final StructType constants;
        private final List paths = new ArrayList();
        /** Values, as InternalRow, and their files; two texts of one value make two of them. */
        private final List groups = new ArrayList();
        private long bytes = 0;

        public Index(SparkSession session, Map files, StructType constants, String zone)
                throws Exception {
            this.constants = constants;
            Configuration configuration = null;
            Map members = new LinkedHashMap();
            List names = (List) files.get("paths");
            List sizes = (List) files.get("sizes");
            List times = (List) files.get("times");
            List columns = (List) files.get("constants");
            for (int i = 0; i < names.size(); i++) {
                Path path = new Path((String) names.get(i));
                String home = path.toUri().getScheme() + "//" + path.toUri().getAuthority();
                FileSystem system = (FileSystem) SYSTEMS.get(home);
                if (system == null) {
                    // Hadoop, too, knows them by scheme and host; the settings are a long copy.
                    if (configuration == null) {
                        configuration = session.sessionState().newHadoopConf();
                    }
                    system = path.getFileSystem(configuration);
                    SYSTEMS.put(home, system);
                }
                long size = ((Number) sizes.get(i)).longValue();
                FileStatus status = new FileStatus(
                    size, false, 1, 128L << 20, ((Number) times.get(i)).longValue(),
                    system.makeQualified(path));
                String[] values = new String[constants.length()];
                for (int c = 0; c < values.length; c++) {
                    values[c] = (String) ((List) columns.get(c)).get(i);
                }
                List key = Arrays.asList(values);
                List group = (List) members.get(key);
                if (group == null) {
                    group = new ArrayList();
                    members.put(key, group);
                }
                group.add(status);
                paths.add(status.getPath());
                bytes += size;
            }
            Iterator entries = members.entrySet().iterator();
            while (entries.hasNext()) {
                Map.Entry entry = (Map.Entry) entries.next();
                List group = (List) entry.getValue();
                groups.add(new Object[] {
                    row((List) entry.getKey(), zone),
                    group.toArray(new FileStatus[group.size()])});
            }
        }

        private InternalRow row(List texts, String zone) {
            Object[] values = new Object[texts.size()];
            for (int i = 0; i < values.length; i++) {
                if (texts.get(i) != null) {
                    DataType type = constants.apply(i).dataType();
                    Expression text = new Literal(
                        UTF8String.fromString((String) texts.get(i)), DataTypes.StringType);
                    values[i] = new Cast(
                        text, type, scala.Option.apply(zone), EvalMode$.MODULE$.LEGACY()).eval(null);
                }
            }
            return new GenericInternalRow(values);
        }

        public scala.collection.immutable.Seq listFiles(
                scala.collection.immutable.Seq partitionFilters,
                scala.collection.immutable.Seq dataFilters) {
            // Spark does not test these filters again.
            List tests = new ArrayList();
            scala.collection.Iterator filters = partitionFilters.iterator();
            while (filters.hasNext()) {
                Expression filter = (Expression) filters.next();
                BasePredicate test = Predicate$.MODULE$.create(filter, attributes(filter));
                test.initialize(0);
                tests.add(test);
            }
            List found = new ArrayList();
            for (int g = 0; g < groups.size(); g++) {
                Object[] group = (Object[]) groups.get(g);
                InternalRow values = (InternalRow) group[0];
                boolean kept = true;
                for (int i = 0; kept && i < tests.size(); i++) {
                    kept = ((BasePredicate) tests.get(i)).eval(values);
                }
                if (kept) {
                    found.add(PartitionDirectory.apply(values, (FileStatus[]) group[1]));
                }
            }
            return seq(found);
        }

        /** The constants in their order, by the attributes that a filter knows them as. */
        private scala.collection.immutable.Seq attributes(Expression filter) {
            Map known = new HashMap();
            scala.collection.Iterator references = filter.references().iterator();
            while (references.hasNext()) {
                AttributeReference reference = (AttributeReference) references.next();
                known.put(reference.name(), reference);
            }
            List found = new ArrayList();
            for (int i = 0; i < constants.length(); i++) {
                StructField field = constants.apply(i);
                Object attribute = known.get(field.name());
                if (attribute == null) {
                    attribute = new AttributeReference(
                        field.name(), field.dataType(), true, Metadata.empty(),
                        NamedExpression$.MODULE$.newExprId(), seq(new ArrayList()));
                }
                found.add(attribute);
            }
            return seq(found);
        }

        public scala.collection.immutable.Seq rootPaths() {
            return seq(paths);
        }

        public String[] inputFiles() {
            String[] found = new String[paths.size()];
            for (int i = 0; i < found.length; i++) {
                found[i] = paths.get(i).toString();
            }
            return found;
        }

        public void refresh() {
        }

        public long sizeInBytes() {
            return bytes;
        }

        public StructType partitionSchema() {
            return constants;
        }

        /** Spark reads one side of a self-join in the place of the other if they are equal. */
        public boolean equals(Object other) {
            return other instanceof Index && ((Index) other).identity.equals(identity);
        }

        public int hashCode() {
            return identity.hashCode();
        }

        public String toString() {
            return "StaticFileIndex(" + paths.size() + " files)";
        }
    }
}

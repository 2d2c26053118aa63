import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.PrunedScan;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructType;

/**
 * A version of a table as a relation that Spark runs by itself, and that `AcceleratedReads` knows.
 *
 * Without the rule it gives the rows of a DataFrame that reads the table as it is. Compiled by
 * Janino: no lambdas, no generics.
 */
public class LakeRelation {
    /** How the texts of relations begin that the rule may read in another way. */
    private static final String MARK = "variantlake ";

    /**
     * @param rows makes a DataFrame of all rows of the table when it is needed
     * @param schema JSON of its columns
     * @param bytes of its files
     * @param number by which Python knows the relation
     * @param version what tells the version from all others, for people first
     */
    public Dataset frame(
            SparkSession session, Supplier rows, String schema, long bytes, long number,
            String version) {
        StructType columns = (StructType) DataType$.MODULE$.fromJson(schema);
        return session.baseRelationToDataFrame(
            new Relation(session, rows, columns, bytes, number, version));
    }

    public static class Relation extends BaseRelation implements PrunedScan, Supplier {
        private final SparkSession session;
        private final Supplier rows;
        private final StructType columns;
        private final long bytes;
        private final long number;
        private final String version;

        Relation(
                SparkSession session, Supplier rows, StructType columns, long bytes, long number,
                String version) {
            this.session = session;
            this.rows = rows;
            this.columns = columns;
            this.bytes = bytes;
            this.number = number;
            this.version = version;
        }

        /** What the rule tells Python of it. */
        public Object get() {
            Map told = new HashMap();
            told.put("relation", Long.valueOf(number));
            return told;
        }

        public SQLContext sqlContext() {
            return session.sqlContext();
        }

        public StructType schema() {
            return columns;
        }

        public boolean needConversion() {
            return false;
        }

        public long sizeInBytes() {
            return bytes;
        }

        public RDD buildScan(String[] names) {
            LogicalPlan plan = ((Dataset) rows.get()).queryExecution().analyzed();
            Map byName = new HashMap();
            for (int i = 0; i < plan.output().size(); i++) {
                byName.put(((Attribute) plan.output().apply(i)).name(), plan.output().apply(i));
            }
            List wanted = new ArrayList();
            for (int i = 0; i < names.length; i++) wanted.add(byName.get(names[i]));
            scala.collection.immutable.Seq items =
                scala.jdk.javaapi.CollectionConverters.asScala(wanted).toSeq();
            Dataset found = Dataset$.MODULE$.ofRows(session, new Project(items, plan));
            return found.queryExecution().toRdd();
        }

        public boolean equals(Object other) {
            return other instanceof Relation && ((Relation) other).version.equals(version)
                && ((Relation) other).columns.equals(columns);
        }

        public int hashCode() {
            return version.hashCode();
        }

        public String toString() {
            return MARK + version + " (" + number + ")";
        }
    }
}

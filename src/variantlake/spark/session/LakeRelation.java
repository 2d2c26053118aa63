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
     * @param rows all rows of the table
     * @param version the number of its version
     * @param id of the table, as its metadata has it
     */
    public Dataset frame(
            SparkSession session, Dataset rows, String location, long version, String id) {
        return session.baseRelationToDataFrame(new Relation(rows, location, version, id));
    }

    public static class Relation extends BaseRelation implements PrunedScan, Supplier {
        private final Dataset rows;
        private final Map told = new HashMap();

        Relation(Dataset rows, String location, long version, String id) {
            this.rows = rows;
            told.put("location", location);
            told.put("version", Long.valueOf(version));
            told.put("id", id);
        }

        /** What the rule tells Python of it. */
        public Object get() {
            return told;
        }

        public SQLContext sqlContext() {
            return rows.sqlContext();
        }

        public StructType schema() {
            return rows.schema();
        }

        public boolean needConversion() {
            return false;
        }

        public long sizeInBytes() {
            return rows.queryExecution().analyzed().stats().sizeInBytes().longValue();
        }

        public RDD buildScan(String[] columns) {
            LogicalPlan plan = rows.queryExecution().analyzed();
            Map byName = new HashMap();
            for (int i = 0; i < plan.output().size(); i++) {
                byName.put(((Attribute) plan.output().apply(i)).name(), plan.output().apply(i));
            }
            List wanted = new ArrayList();
            for (int i = 0; i < columns.length; i++) wanted.add(byName.get(columns[i]));
            scala.collection.immutable.Seq items =
                scala.jdk.javaapi.CollectionConverters.asScala(wanted).toSeq();
            SparkSession session = (SparkSession) rows.sparkSession();
            Dataset found = Dataset$.MODULE$.ofRows(session, new Project(items, plan));
            return found.queryExecution().toRdd();
        }

        public boolean equals(Object other) {
            return other instanceof Relation && ((Relation) other).told.equals(told);
        }

        public int hashCode() {
            return told.hashCode();
        }

        public String toString() {
            return MARK + told.get("location") + " v" + told.get("version");
        }
    }
}

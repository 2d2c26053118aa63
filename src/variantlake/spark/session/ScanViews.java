import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.ViewHelper$;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructType;

/**
 * Global temporary views of DataFrames, as `createOrReplaceGlobalTempView` makes them.
 *
 * That is a command of Spark, with an execution of its own that listeners hear of: 4 ms each time,
 * three times a query. Here the entry goes straight into the catalog. Nobody else knows the names,
 * so that there is nothing to look up, to ask back or to take out of a cache.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class ScanViews {
    public void publish(SparkSession session, Dataset frame, String name) {
        put(session, frame.queryExecution().analyzed(), name);
    }

    /** @param schema JSON of the columns of a view without rows */
    public void publishEmpty(SparkSession session, String schema, String name) {
        StructType columns = (StructType) DataType$.MODULE$.fromJson(schema);
        put(session, new LocalRelation(
            DataTypeUtils$.MODULE$.toAttributes(columns), none(), false, scala.Option.empty()), name);
    }

    public void drop(SparkSession session, String name) {
        session.sessionState().catalog().dropGlobalTempView(name);
    }

    private static void put(SparkSession session, LogicalPlan plan, String name) {
        SessionCatalog catalog = session.sessionState().catalog();
        TableIdentifier identifier =
            new TableIdentifier(name, scala.Option.apply(catalog.globalTempDatabase()));
        // The function that finds an older view: None for every name.
        scala.Function1 older = ((scala.collection.immutable.Map)
            scala.collection.immutable.Map$.MODULE$.empty()).withDefaultValue(scala.Option.empty());
        catalog.createGlobalTempView(
            name,
            ViewHelper$.MODULE$.createTemporaryViewRelation(
                identifier, session, true, older, scala.Option.empty(), plan, plan, none(),
                scala.Option.empty()),
            true);
    }

    private static scala.collection.immutable.Seq none() {
        return (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
    }
}

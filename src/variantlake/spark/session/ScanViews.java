import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.api.python.PythonSQLUtils;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.ViewHelper$;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructType;

/**
 * What is made of scans: views that statements keep, columns that are never NULL.
 *
 * `createOrReplaceGlobalTempView` is a command of Spark, with an execution of its own that listeners
 * hear of. Here the entry goes straight into the catalog. Nobody else knows the names, so that there
 * is nothing to look up, to ask back or to take out of a cache.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class ScanViews {
    public void publish(SparkSession session, Dataset frame, String name) {
        LogicalPlan plan = frame.queryExecution().analyzed();
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

    /** @param schema JSON of the columns of a DataFrame without rows */
    public Dataset empty(SparkSession session, String schema) {
        StructType columns = (StructType) DataType$.MODULE$.fromJson(schema);
        return Dataset$.MODULE$.ofRows(session, new LocalRelation(
            DataTypeUtils$.MODULE$.toAttributes(columns), none(), false, scala.Option.empty()));
    }

    /**
     * Rows that the driver has, in one partition: to group or to sort them needs no exchange.
     *
     * @param batch an Arrow batch of them, as a message of its own
     * @param schema JSON of its columns
     * @param one whether it is one row, which is in one partition as it is: Spark may have its
     *     answer before it starts a job
     */
    public Dataset rows(SparkSession session, byte[] batch, String schema, boolean one) {
        List batches = new ArrayList();
        batches.add(batch);
        Dataset found = (Dataset) PythonSQLUtils.toDataFrame(
            scala.jdk.javaapi.CollectionConverters.asScala(batches.iterator()), schema, session);
        return one ? found : (Dataset) found.coalesce(1);
    }

    /**
     * The same rows with columns that are never NULL: a row that has one is an error where it is
     * needed. Columns that Spark knows to have none stay as they are.
     *
     * @param required what to call these columns in the error, by their names
     */
    public Dataset asserted(SparkSession session, Dataset frame, Map required) {
        LogicalPlan plan = frame.queryExecution().analyzed();
        List items = new ArrayList();
        scala.collection.Iterator columns = plan.output().iterator();
        while (columns.hasNext()) {
            Attribute column = (Attribute) columns.next();
            Object shown = required.get(column.name());
            if (shown == null || !column.nullable()) {
                items.add(column);
                continue;
            }
            List path = new ArrayList();
            path.add(shown);
            items.add(new Alias(
                new AssertNotNull(column, seq(path)), column.name(),
                NamedExpression$.MODULE$.newExprId(), none(),
                scala.Option.apply(column.metadata()), none()));
        }
        return Dataset$.MODULE$.ofRows(session, new Project(seq(items), plan));
    }

    private static scala.collection.immutable.Seq seq(List items) {
        return (scala.collection.immutable.Seq)
            scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }

    private static scala.collection.immutable.Seq none() {
        return (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
    }
}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Prepares each session that a server makes for a client: it knows the data source `variantlake`,
 * as the session does that it is made from, and finds the classes of Spark's jars.
 *
 * Spark asks for rules when it makes a session's analyzer, ahead of the session's first query: the
 * rule itself does nothing. Compiled by Janino: no lambdas, no generics.
 */
public class ServedSessions extends scala.runtime.AbstractFunction1 {
    private static final String SOURCE = "variantlake";

    private SparkSession root;

    /** Prepare the sessions that are made from this one, from now on. */
    public void install(SparkSession root) {
        this.root = root;
        root.extensions().injectHintResolutionRule(this);
    }

    public Object apply(Object session) {
        try {
            prepare((SparkSession) session);
        } catch (Throwable error) {
            org.slf4j.LoggerFactory.getLogger(SOURCE).warn("a session without the source", error);
        }
        return new Nothing();
    }

    private void prepare(SparkSession session) {
        if (session == root) return;
        // Threads of the Thrift server have Hive's own loader when they open a session.
        ClassLoader jars = session.sharedState().jarClassLoader();
        Thread thread = Thread.currentThread();
        if (!isBelow(thread.getContextClassLoader(), jars.getParent())) {
            thread.setContextClassLoader(jars);
        }
        if (!session.sessionState().dataSourceManager().dataSourceExists(SOURCE)) {
            session.sessionState().dataSourceManager().registerDataSource(
                SOURCE, root.sessionState().dataSourceManager().lookupDataSource(SOURCE));
        }
    }

    private static boolean isBelow(ClassLoader loader, ClassLoader other) {
        for (ClassLoader each = loader; each != null; each = each.getParent()) {
            if (each == other) return true;
        }
        return false;
    }

    public static class Nothing extends Rule {
        public TreeNode apply(TreeNode plan) {
            return plan;
        }
    }
}

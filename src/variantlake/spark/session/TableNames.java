import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the names of tables mean: in a session's catalogs, and in texts that run with names of ours.
 *
 * Nothing of a table is loaded but its entry in the catalog: resolving a name through Spark would
 * read the whole Delta log. For a text of ours a rule of the session's analyzer puts relations in
 * the place of names, before Spark resolves any: common table expressions are told apart by then,
 * and Spark's own rules bring the queries of views and subqueries. It does nothing else, and for no
 * other text.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class TableNames {
    private static final String RULES = "hintResolutionRules";
    /** How the names of statements start that do something, or hold statements that do. */
    private static final String[] NOT_QUERIES = {
        "Add", "Alter", "Analyze", "Append", "Cache", "Call", "Clear", "Comment", "Compound",
        "Create", "Delete", "Describe", "Drop", "Execute", "Explain", "Insert", "Load", "Merge",
        "Msck", "Optimize", "Overwrite", "Recover", "Refresh", "Rename", "Repair", "Replace",
        "Reset", "Set", "Show", "Single", "Truncate", "Uncache", "Unset", "Update", "Vacuum"
    };
    /** Statements that hold a query and keep nothing of its text; their method that gives it. */
    private static final String[][] INSIDE = {
        {"CreateTableAsSelect", "query"}, {"ExplainCommand", "logicalPlan"},
        {"InsertIntoDir", "child"}, {"InsertIntoStatement", "query"},
        {"ReplaceTableAsSelect", "query"}
    };

    private final ObjectMapper mapper = new ObjectMapper();
    /** What gives relations to the text that this thread analyses. */
    private final ThreadLocal reading = new ThreadLocal();

    /**
     * What a name is, null for a name that no catalog knows: `provider` and `location` of a table;
     * neither of a view. `name` is the whole name of what is not of the session alone.
     *
     * @param name JSON: the name's parts
     */
    public String find(SparkSession session, String name) throws Exception {
        Map found = find(session, (List) mapper.readValue(name, List.class), null);
        return found == null ? null : mapper.writeValueAsString(found);
    }

    /**
     * @param view what a view's query was analysed in, null outside of views: its names mean what
     *     they meant when it was made
     */
    private static Map find(SparkSession session, List parts, AnalysisContext view) {
        SessionCatalog known = session.sessionState().catalog();
        boolean temporary = view == null || refersTo(view, parts);
        if (temporary && known.getRawLocalOrGlobalTempView(seq(parts)).isDefined()) {
            return new LinkedHashMap();
        }
        CatalogManager manager = session.sessionState().catalogManager();
        if (parts.size() == 1 && session.sessionState().conf().getConfString(
                "spark.sql.path.enabled", "false").equals("true")) {
            return null; // the name may be found along a path of schemas
        }
        List whole = new ArrayList(parts);
        boolean qualified = parts.size() > 1 && manager.isCatalogRegistered((String) parts.get(0));
        if (!qualified) {
            List homes = view == null ? null : list(view.catalogAndNamespace());
            List prefix = new ArrayList();
            prefix.add(homes == null ? manager.currentCatalog().name() : homes.get(0));
            if (parts.size() == 1) {
                prefix.addAll(homes == null
                    ? Arrays.asList((Object[]) manager.currentNamespace())
                    : homes.subList(1, homes.size()));
            }
            prefix.addAll(parts);
            whole = prefix;
        }
        Map found = entry(known, manager, whole);
        if (found != null) found.put("name", whole);
        return found;
    }

    /** Whether a view's query means a temporary view by a name. */
    private static boolean refersTo(AnalysisContext view, List parts) {
        scala.collection.Iterator names = view.referredTempViewNames().iterator();
        while (names.hasNext()) {
            List name = list((scala.collection.Seq) names.next());
            boolean same = name.size() == parts.size();
            for (int i = 0; same && i < parts.size(); i++) {
                same = ((String) name.get(i)).equalsIgnoreCase((String) parts.get(i));
            }
            if (same) return true;
        }
        return false;
    }

    private static Map entry(SessionCatalog known, CatalogManager manager, List name) {
        String catalog = (String) name.get(0);
        String table = (String) name.get(name.size() - 1);
        List namespace = name.subList(1, name.size() - 1);
        if (catalog.equalsIgnoreCase("spark_catalog") && namespace.size() == 1) {
            try {
                CatalogTable meta = known.getTableRawMetadata(new TableIdentifier(
                    table, new scala.Some(namespace.get(0))));
                return meta.tableType().name().equals("VIEW") ? new LinkedHashMap()
                    : table(
                        meta.provider().isDefined() ? (String) meta.provider().get() : "",
                        meta.storage().locationUri().isDefined()
                            ? meta.storage().locationUri().get().toString() : "");
            } catch (Throwable error) {
                // Not there, or in another catalog that took this one's name.
            }
        }
        try {
            CatalogPlugin plugin = manager.catalog(catalog);
            String[] names = (String[]) namespace.toArray(new String[0]);
            Map properties = ((TableCatalog) plugin)
                .loadTable(Identifier.of(names, table)).properties();
            return table(
                String.valueOf(properties.get("provider")),
                String.valueOf(properties.get("location")));
        } catch (Throwable error) {
            return null;
        }
    }

    private static Map table(String provider, String location) {
        Map found = new LinkedHashMap();
        found.put("provider", provider);
        found.put("location", location);
        return found;
    }

    /**
     * What a text does: `query` if Spark runs nothing of it before its rows are asked for, `inside`
     * for a statement that holds a query, and all else.
     */
    public String kind(SparkSession session, String text) throws Exception {
        LogicalPlan plan = session.sessionState().sqlParser().parsePlan(text);
        if (isQuery(plan)) return "query";
        return query(plan) != null && isQuery(query(plan)) ? "inside" : "";
    }

    private static boolean isQuery(LogicalPlan plan) {
        for (int i = 0; i < NOT_QUERIES.length; i++) {
            if (plan.nodeName().startsWith(NOT_QUERIES[i])) return false;
        }
        for (int i = 0; i < plan.children().size(); i++) {
            if (!isQuery((LogicalPlan) plan.children().apply(i))) return false;
        }
        return true;
    }

    /** The query inside of a statement, null if it has none that may change. */
    private static LogicalPlan query(LogicalPlan statement) {
        for (int i = 0; i < INSIDE.length; i++) {
            if (!statement.nodeName().equals(INSIDE[i][0])) continue;
            try {
                return (LogicalPlan) statement.getClass().getMethod(INSIDE[i][1], new Class[0])
                    .invoke(statement, new Object[0]);
            } catch (ReflectiveOperationException error) {
                return null;
            }
        }
        return null;
    }

    /**
     * A text as the session takes it, but for the tables that `relations` gives.
     *
     * @param arguments a Map or an array of columns, as the session takes them, or null
     * @param relations gives a DataFrame for a name (JSON: `parts`, `source`, which is what the text
     *     says there, `version`, `timed`, and the `entry` of a catalog), or null to leave it to
     *     Spark, or a text: then all fails. It is told the time (in milliseconds, null for none) of
     *     a name that is `timed` by a Supplier
     */
    public Dataset sql(
            SparkSession session, String text, Object arguments, BiFunction relations)
            throws Exception {
        Object before = begin(session, relations);
        try {
            if (arguments == null) return session.sql(text);
            if (arguments instanceof Map) return session.sql(text, (Map) arguments);
            return session.sql(text, arguments);
        } finally {
            reading.set(before);
        }
    }

    /** The query inside of a statement, analysed and not run. */
    public Dataset inside(SparkSession session, String text, BiFunction relations)
            throws Exception {
        Object before = begin(session, relations);
        try {
            return Dataset$.MODULE$.ofRows(
                session, query(session.sessionState().sqlParser().parsePlan(text)));
        } finally {
            reading.set(before);
        }
    }

    private Object begin(SparkSession session, BiFunction relations) throws Exception {
        Analyzer analyzer = session.sessionState().analyzer();
        synchronized (this) {
            List rules = list(analyzer.hintResolutionRules());
            boolean there = false;
            for (int i = 0; i < rules.size(); i++) there |= rules.get(i) instanceof Names;
            if (!there) {
                rules.add(new Names(this, session));
                rulesOf(analyzer).set(analyzer, seq(rules));
            }
        }
        Object before = reading.get();
        reading.set(new Reading(relations));
        return before;
    }

    /** The rules are the analyzer's own: nothing else takes one in once the session is there. */
    private static Field rulesOf(Analyzer analyzer) throws NoSuchFieldException {
        Class each = analyzer.getClass();
        while (each != Analyzer.class) {
            Field[] fields = each.getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (!fields[i].getName().equals(RULES)) continue;
                fields[i].setAccessible(true);
                return fields[i];
            }
            each = each.getSuperclass();
        }
        throw new NoSuchFieldException(RULES);
    }

    private static class Reading {
        final BiFunction relations;
        /** What is known to be none of ours: Spark's rules come by several times. */
        final Set others = new HashSet();

        Reading(BiFunction relations) {
            this.relations = relations;
        }
    }

    public static class Names extends Rule {
        private final TableNames owner;
        private final SparkSession session;

        Names(TableNames owner, SparkSession session) {
            this.owner = owner;
            this.session = session;
        }

        public TreeNode apply(TreeNode plan) {
            Reading reading = (Reading) owner.reading.get();
            return reading == null ? plan : new Walk(this, reading).plan((LogicalPlan) plan);
        }
    }

    private static class Walk extends scala.runtime.AbstractFunction1 {
        private final Names rule;
        private final Reading reading;

        Walk(Names rule, Reading reading) {
            this.rule = rule;
            this.reading = reading;
        }

        public Object apply(Object plan) {
            return plan((LogicalPlan) plan);
        }

        LogicalPlan plan(LogicalPlan plan) {
            if (plan.analyzed()) return plan;
            if (plan instanceof UnresolvedRelation) {
                return relation(plan, (UnresolvedRelation) plan, null);
            }
            if (plan instanceof RelationTimeTravel
                    && ((RelationTimeTravel) plan).relation() instanceof UnresolvedRelation) {
                RelationTimeTravel travel = (RelationTimeTravel) plan;
                return relation(plan, (UnresolvedRelation) travel.relation(), travel);
            }
            return (LogicalPlan) plan.mapChildren(this);
        }

        private LogicalPlan relation(
                LogicalPlan plan, UnresolvedRelation name, RelationTimeTravel travel) {
            if (name.isStreaming() || !name.options().isEmpty()) return plan; // we know none
            AnalysisContext context = (AnalysisContext) AnalysisContext$.MODULE$.get();
            AnalysisContext view = context.catalogAndNamespace().isEmpty() ? null : context;
            List parts = list(name.multipartIdentifier());
            List key = Arrays.asList(new Object[] {parts, travel, view == null ? null
                : Arrays.asList(new Object[] {
                    view.catalogAndNamespace(), view.referredTempViewNames()})});
            if (reading.others.contains(key)) return plan;
            Map entry = find(rule.session, parts, view);
            Map request = new LinkedHashMap();
            request.put("parts", parts);
            request.put("source", source(plan, parts));
            request.put("entry", entry);
            request.put("version", travel == null || travel.version().isEmpty()
                ? null : travel.version().get());
            request.put("timed", Boolean.valueOf(travel != null && travel.timestamp().isDefined()));
            String text;
            try {
                text = rule.owner.mapper.writeValueAsString(request);
            } catch (java.io.IOException error) {
                throw new IllegalStateException(error);
            }
            Object found = reading.relations.apply(
                text, travel == null ? null : new Moment(rule.session, travel));
            if (found == null) {
                reading.others.add(key);
                return plan;
            }
            if (found instanceof String) throw new IllegalStateException((String) found);
            // Columns may be qualified by any end of the whole name.
            List whole = entry == null || entry.get("name") == null ? parts : (List) entry.get("name");
            AliasIdentifier alias = new AliasIdentifier(
                (String) whole.get(whole.size() - 1), seq(whole.subList(0, whole.size() - 1)));
            return new SubqueryAlias(alias, ((Dataset) found).queryExecution().analyzed());
        }

        /** What the text says where a relation stands. */
        private static String source(LogicalPlan plan, List parts) {
            Origin origin = plan.origin();
            if (origin.sqlText().isEmpty() || origin.startIndex().isEmpty()
                    || origin.stopIndex().isEmpty()) {
                return String.join(".", parts);
            }
            String text = (String) origin.sqlText().get();
            int start = ((Integer) origin.startIndex().get()).intValue();
            int stop = ((Integer) origin.stopIndex().get()).intValue() + 1;
            return text.substring(
                text.offsetByCodePoints(0, start), text.offsetByCodePoints(0, stop));
        }
    }

    /** The time of a TIMESTAMP AS OF in milliseconds, null for what is none. */
    public static class Moment implements Supplier {
        private final SparkSession session;
        private final RelationTimeTravel travel;

        Moment(SparkSession session, RelationTimeTravel travel) {
            this.session = session;
            this.travel = travel;
        }

        public Object get() {
            Expression moment = new Cast(
                (Expression) travel.timestamp().get(), DataTypes.TimestampType,
                scala.Option.empty(), EvalMode$.MODULE$.TRY());
            List items = new ArrayList();
            items.add(new Alias(
                moment, "moment", NamedExpression$.MODULE$.newExprId(), seq(new ArrayList()),
                scala.Option.empty(), seq(new ArrayList())));
            Dataset found = Dataset$.MODULE$.ofRows(
                session, new Project(seq(items), new OneRowRelation()));
            List rows = found.selectExpr(new String[] {"unix_millis(moment)"}).collectAsList();
            return ((org.apache.spark.sql.Row) rows.get(0)).get(0);
        }

        public String toString() {
            return ((Expression) travel.timestamp().get()).sql();
        }
    }

    private static List list(scala.collection.Seq items) {
        return new ArrayList(CollectionConverters.asJava(items));
    }

    private static scala.collection.immutable.Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }
}

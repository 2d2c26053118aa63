import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlanIntegrity;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.VariantType;

/**
 * A rule of the optimizer that lets Python plan the reads of Delta tables with Variant columns.
 *
 * It stands among the rules before cost-based optimization, ahead of Delta Spark's own: conditions
 * are where they belong by then, and neither has Delta looked for files nor Spark put paths into
 * the scan. Subqueries are optimized before the query around them; there the rule only marks the
 * relations, so that Spark leaves them as they are, and the query's own turn deals with all of them
 * by one version of each table.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class AcceleratedReads {
    /** It learns how to write what it is given, once. */
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PREFIX = "spark.variantlake.";
    private static final String SWITCH = PREFIX + "enabled";
    private static final String MARK = "__vl_r";
    /** What Spark asks the extensions of a session for before each query. */
    private static final String RULES = "preCBORules";
    private static final String STRATEGIES = "plannerStrategyBuilders";
    private static final String INDEX = "org.apache.spark.sql.delta.files.TahoeLogFileIndex";
    /** How the text of a `LakeRelation` begins. */
    private static final String OURS = "variantlake ";
    private static final String SOURCE = "variantlake";
    private static final String FORMAT = "org.apache.spark.sql.delta.DeltaParquetFileFormat";
    /** What tells how a plan is run: where rows lie, in which order, in how many partitions. */
    private static final Set PLACES = new HashSet(Arrays.asList(new Object[] {
        "InputFileName", "InputFileBlockStart", "InputFileBlockLength", "MonotonicallyIncreasingID",
        "SparkPartitionID", "Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "Sample"
    }));

    /** Statements over the very relation whose rows they change. */
    private static final Set CHANGES = new HashSet(Arrays.asList(new Object[] {
        "DeleteFromTable", "UpdateTable", "MergeIntoTable"
    }));

    /** Operators that look at their input only through their expressions. */
    private static final Set PASSING = new HashSet(Arrays.asList(new Object[] {
        "Filter", "GlobalLimit", "Join", "LocalLimit", "Project", "Sort", "SubqueryAlias"
    }));

    /** How long Python may take to answer at all, and how long it is left alone if it did not. */
    private static final long ANSWER_SECONDS = 10;
    private static final long SILENT_SECONDS = 60;

    private BiFunction planner;
    private BiFunction dump;
    private BiFunction substitution;
    private BiFunction partials;
    private scala.Function1 strategies;
    private final Builder builder = new Builder(this);
    /**
     * What is to last from a query's subqueries to the query itself: snapshots by tables, relations
     * by marks. The key is the tracker that each query has of its own.
     */
    private final Map memories = Collections.synchronizedMap(new WeakHashMap());
    private final AtomicLong marks = new AtomicLong();
    private final ThreadLocal busy = new ThreadLocal();
    /** Whether Python has answered this thread, which has a connection of its own. */
    private final ThreadLocal reached = new ThreadLocal();
    private volatile long silentUntil = System.nanoTime();
    private volatile boolean all = false;
    private final Set said = Collections.synchronizedSet(new HashSet());

    /**
     * Put the rule in front of those that the session, and all that share its extensions, have.
     *
     * @param planner answers a request, after the number of the thread, with an array of the session
     *     and of a `Part`, by a list, or by null; it is told without these what the rule failed at
     * @param dump `PlanDump`
     * @param substitution `PathSubstitution`
     * @param partials `PartialAggregates`
     * @param strategies makes what plans our scans, as `StaticFileIndex` says
     */
    public void install(
            SparkSession session, BiFunction planner, BiFunction dump, BiFunction substitution,
            BiFunction partials, scala.Function1 strategies)
            throws Exception {
        this.planner = planner;
        this.dump = dump;
        this.substitution = substitution;
        this.partials = partials;
        this.strategies = strategies;
        // Both are looked up before either changes: nothing is half installed.
        scala.collection.mutable.Buffer rules = builders(session, RULES);
        scala.collection.mutable.Buffer planners = builders(session, STRATEGIES);
        rules.prepend(builder);
        planners.prepend(strategies);
    }

    /** Read tables of others, too: those of Delta Spark, and of our data source. */
    public void readAll() {
        all = true;
    }

    public void remove(SparkSession session) throws Exception {
        builders(session, RULES).subtractOne(builder);
        builders(session, STRATEGIES).subtractOne(strategies);
    }

    private static scala.collection.mutable.Buffer builders(SparkSession session, String name)
            throws Exception {
        Object extensions = session.extensions();
        Field[] fields = extensions.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            if (fields[i].getName().endsWith(name)) {
                fields[i].setAccessible(true);
                return (scala.collection.mutable.Buffer) fields[i].get(extensions);
            }
        }
        throw new IllegalStateException("SparkSessionExtensions has no " + name);
    }

    /** Say once in the life of the rule why a query is left as it is. */
    private void warn(Throwable error) {
        // What is called by reflection has its own error as the cause.
        while (error instanceof java.lang.reflect.InvocationTargetException) {
            error = error.getCause();
        }
        // Without a plan that follows, and its ids: these are others each time.
        String text = String.valueOf(error).split("\n", 2)[0].replaceAll("#\\d+L?", "");
        try {
            if (said.size() < 100 && said.add(text)) ask(text, null);
        } catch (Throwable again) {
            org.slf4j.LoggerFactory.getLogger("variantlake").warn(text);
        }
    }

    /**
     * What Python answers. A connection to a server whose thread is dead waits for ever, so each
     * thread first tries whether there is an answer at all.
     */
    private Object ask(String request, Object[] given) throws Exception {
        if (reached.get() == null) {
            if (System.nanoTime() - silentUntil < 0) {
                throw new TimeoutException("Python does not answer");
            }
            FutureTask answer = new FutureTask(new Answer(planner));
            Thread asking = new Thread(answer, "variantlake-asks");
            asking.setDaemon(true);
            asking.start();
            try {
                answer.get(ANSWER_SECONDS, TimeUnit.SECONDS);
            } catch (TimeoutException error) {
                silentUntil = System.nanoTime() + TimeUnit.SECONDS.toNanos(SILENT_SECONDS);
                throw new TimeoutException("Python does not answer");
            }
            reached.set(Boolean.TRUE);
        }
        return planner.apply(request, given);
    }

    private static class Answer implements Callable {
        private final BiFunction planner;

        Answer(BiFunction planner) {
            this.planner = planner;
        }

        public Object call() {
            return planner.apply("", null);
        }
    }

    public static class Builder extends scala.runtime.AbstractFunction1 {
        private final AcceleratedReads owner;

        public Builder(AcceleratedReads owner) {
            this.owner = owner;
        }

        public Object apply(Object session) {
            return new Reads(owner, (SparkSession) session);
        }
    }

    public static class Reads extends Rule {
        private final AcceleratedReads owner;
        private final SparkSession session;

        public Reads(AcceleratedReads owner, SparkSession session) {
            this.owner = owner;
            this.session = session;
        }

        public TreeNode apply(TreeNode plan) {
            if (owner.busy.get() != null) return plan;
            owner.busy.set(Boolean.TRUE);
            scala.Option active = SparkSession$.MODULE$.getActiveSession();
            try {
                return new Query(owner, session).of((LogicalPlan) plan);
            } catch (Throwable error) {
                owner.warn(error);
                return ((LogicalPlan) plan).transformWithSubqueries(new Unmark());
            } finally {
                owner.busy.remove();
                if (active.isDefined()) {
                    SparkSession$.MODULE$.setActiveSession((SparkSession) active.get());
                } else {
                    SparkSession$.MODULE$.clearActiveSession();
                }
            }
        }
    }

    /**
     * Gives the rows of an operator of a plan, by the places among children that lead to it (JSON)
     * and by an answer that tells how its tables are read. They are found by a query of their own,
     * which the rule leaves alone.
     */
    public static class Part implements BiFunction {
        private final Query query;
        private final LogicalPlan plan;
        private final List expressions;

        Part(Query query, LogicalPlan plan, List expressions) {
            this.query = query;
            this.plan = plan;
            this.expressions = expressions;
        }

        public Object apply(Object steps, Object answer) {
            try {
                return query.rows(plan, (String) steps, (List) answer, expressions);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Takes the marks off a plan, which stays as it is below them: nothing in it can fail. */
    private static class Unmark extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object plan) {
            return plan instanceof LogicalPlan && Query.isMark((LogicalPlan) plan);
        }

        public Object applyOrElse(Object plan, scala.Function1 otherwise) {
            if (!isDefinedAt(plan)) return otherwise.apply(plan);
            return ((LogicalPlan) plan).children().head();
        }
    }

    /** One turn of the rule. */
    private static class Query {
        private final AcceleratedReads owner;
        private final SparkSession session;
        /** By the id of their first column: two of the same ids are one relation, read twice. */
        private final Map relations = new LinkedHashMap();
        private final Map memory;
        private boolean marked = false;
        private boolean failed = false;

        Query(AcceleratedReads owner, SparkSession session) {
            this.owner = owner;
            this.session = session;
            this.memory = memory();
        }

        LogicalPlan of(LogicalPlan plan) {
            boolean inner = plan instanceof Subquery;
            try {
                collect(plan);
                if (relations.size() > 0 && isEnabled(SQLConf$.MODULE$.get())) {
                    if (inner) return mark(plan);
                    LogicalPlan found =
                        plan instanceof V2WriteCommand ? written(plan) : accelerated(plan);
                    if (found != null) return found;
                }
            } catch (Throwable error) {
                failed(error);
                marked = true; // as far as anybody can tell
            }
            return inner || !marked ? plan : unmarked(plan);
        }

        /** Say once for a query why it is left as it is. */
        private void failed(Throwable error) {
            if (error instanceof InterruptedException) Thread.currentThread().interrupt();
            if (!failed) owner.warn(error);
            failed = true;
        }

        /** The plan without marks, below which Spark's rules do now what they have passed by. */
        private LogicalPlan unmarked(LogicalPlan plan) {
            try {
                return (LogicalPlan) owner.substitution.apply(
                    new Object[] {plan, session, new HashMap(), memory, null}, MARK);
            } catch (Throwable error) {
                failed(error);
                return (LogicalPlan) plan.transformWithSubqueries(new Unmark());
            }
        }

        /** Files that may be missing or broken are for Spark's own reader, which passes them by. */
        private static boolean isEnabled(SQLConf settings) {
            return !"false".equalsIgnoreCase(settings.getConfString(SWITCH, "true"))
                && !settings.ignoreMissingFiles() && !settings.ignoreCorruptFiles();
        }

        /** What the session says about us. */
        private static Map settings() {
            Map found = new HashMap();
            Map all = SQLConf$.MODULE$.get().settings();
            synchronized (all) {
                java.util.Iterator entries = all.entrySet().iterator();
                while (entries.hasNext()) {
                    Map.Entry entry = (Map.Entry) entries.next();
                    if (((String) entry.getKey()).startsWith(PREFIX)) {
                        found.put(entry.getKey(), entry.getValue());
                    }
                }
            }
            return found;
        }

        private Map memory() {
            scala.Option tracker = (scala.Option) QueryPlanningTracker$.MODULE$.get();
            Object query = tracker.isDefined() ? tracker.get() : this;
            synchronized (owner.memories) {
                Map found = (Map) owner.memories.get(query);
                if (found == null) {
                    found = new HashMap();
                    owner.memories.put(query, found);
                }
                return found;
            }
        }

        /** The relations of a plan that may be ours to read, those of its subqueries too. */
        private void collect(LogicalPlan plan) {
            if (isMark(plan)) {
                marked = true;
                // Spark's rules have reached for the one below.
                Object original = memory.get(((SubqueryAlias) plan).alias());
                if (original != null) plan = (LogicalPlan) original;
            }
            if (isTable(plan)) {
                Object id = key(plan);
                if (!relations.containsKey(id)) relations.put(id, plan);
            }
            scala.collection.Iterator below = plan.children().iterator();
            while (below.hasNext()) collect((LogicalPlan) below.next());
            below = plan.subqueries().iterator();
            while (below.hasNext()) collect((LogicalPlan) below.next());
        }

        static boolean isMark(LogicalPlan plan) {
            return plan instanceof SubqueryAlias && ((SubqueryAlias) plan).alias().startsWith(MARK);
        }

        private static Object key(LogicalPlan relation) {
            return Long.valueOf(((AttributeReference) relation.output().head()).exprId().id());
        }

        private boolean isTable(LogicalPlan plan) {
            if (!plan.children().isEmpty() || plan.output().isEmpty()) return false;
            if (isOurs(plan)) return true;
            return owner.all && (isSource(plan) || (isDelta(plan) && hasVariant(plan)));
        }

        private static boolean isOurs(LogicalPlan plan) {
            if (!(plan instanceof LogicalRelation)) return false;
            Object relation = ((LogicalRelation) plan).relation();
            return relation instanceof Supplier && relation.toString().startsWith(OURS);
        }

        /** Whether it is of `spark.read.format("variantlake")`. */
        private static boolean isSource(LogicalPlan plan) {
            return plan instanceof DataSourceV2Relation
                && ((DataSourceV2Relation) plan).table().name().equals(SOURCE);
        }

        private static boolean isDelta(LogicalPlan plan) {
            if (!(plan instanceof LogicalRelation)) return false;
            Object relation = ((LogicalRelation) plan).relation();
            return relation instanceof HadoopFsRelation
                && ((HadoopFsRelation) relation).location().getClass().getName().equals(INDEX);
        }

        private static boolean hasVariant(LogicalPlan relation) {
            scala.collection.Iterator output = relation.output().iterator();
            while (output.hasNext()) {
                if (((AttributeReference) output.next()).dataType() instanceof VariantType) {
                    return true;
                }
            }
            return false;
        }

        /** The plan with an alias round each relation, which Spark's next rules do not look into. */
        private LogicalPlan mark(LogicalPlan plan) {
            if (isTable(plan) && relations.containsKey(key(plan))) {
                String name = MARK + "_" + owner.marks.incrementAndGet();
                memory.put(name, plan);
                return SubqueryAlias$.MODULE$.apply(name, plan);
            }
            if (isMark(plan)) return plan;
            List children = new ArrayList();
            boolean changed = false;
            scala.collection.Iterator below = plan.children().iterator();
            while (below.hasNext()) {
                LogicalPlan child = (LogicalPlan) below.next();
                LogicalPlan other = mark(child);
                changed |= other != child;
                children.add(other);
            }
            return changed ? (LogicalPlan) plan.withNewChildren(seq(children)) : plan;
        }

        /**
         * A statement that writes rows, as `accelerated`. Delta Spark has yet to begin what it is,
         * if one of its own tables is written; of all others it never looks at what is read.
         */
        private LogicalPlan written(LogicalPlan plan) throws Exception {
            if (!isSource((LogicalPlan) ((V2WriteCommand) plan).table())) leaveOthers();
            List children = new ArrayList();
            for (int i = 0; i < plan.children().size(); i++) {
                LogicalPlan found = accelerated((LogicalPlan) plan.children().apply(i));
                if (found == null) return null;
                children.add(found);
            }
            return children.isEmpty() ? null : (LogicalPlan) plan.withNewChildren(seq(children));
        }

        /** The plan over scans of ours; null where it stays as it is. */
        private LogicalPlan accelerated(LogicalPlan plan) throws Exception {
            if (plan.isStreaming() || CHANGES.contains(plan.nodeName())) return null;
            if (tellsPlaces(plan)) leaveOthers();
            if (!isAsked(plan)) return null;
            String zone = SQLConf$.MODULE$.get().sessionLocalTimeZone();
            // Not with settings of a part of a query alone.
            if (!zone.equals(session.sessionState().conf().sessionLocalTimeZone())) return null;
            Map names = new HashMap();
            List requests = requests(names);
            if (requests == null || requests.isEmpty()) return null;
            List expressions = new ArrayList();
            Object[] dumped = new Object[] {expressions, null, new HashMap()};
            LogicalPlan named = (LogicalPlan) owner.substitution.apply(
                new Object[] {plan, session, names, memory, null}, MARK);
            Map request = new LinkedHashMap();
            request.put("session", session.sessionUUID());
            request.put("zone", zone);
            request.put("settings", settings());
            request.put("relations", requests);
            Object dump = owner.dump.apply(named, dumped);
            request.put("text", dumped[1] == null ? "" : dumped[1]);
            String text = JSON.writeValueAsString(request);
            text = Thread.currentThread().getId() + " "
                + text.substring(0, text.length() - 1) + ",\"plan\":" + dump + "}";
            Part part = new Part(this, named, expressions);
            List answer = (List) owner.ask(text, new Object[] {session, part});
            if (answer == null) return null;
            LogicalPlan found = changed(named, answer, expressions);
            scala.Option wrong = LogicalPlanIntegrity.validateOptimizedPlan(plan, found, false);
            if (wrong.isDefined() || !isWhole(found)) {
                String why = wrong.isDefined() ? (String) wrong.get() : "a column is missing";
                throw new IllegalStateException("not a plan: " + why);
            }
            if (!sameColumns(plan, found)) throw new IllegalStateException("other columns came out");
            return found;
        }

        /** The plan over what an answer holds: JSON, then partial rows and scans as that says. */
        private LogicalPlan changed(LogicalPlan plan, List answer, List expressions)
                throws Exception {
            Map told = (Map) JSON.readValue((String) answer.get(0), Map.class);
            List aggregates = (List) told.get("aggregates");
            int at = 1;
            for (int i = 0; i < aggregates.size(); i++) {
                plan = (LogicalPlan) owner.partials.apply(
                    new Object[] {plan, aggregates.get(i)}, answer.get(at++));
                if (plan == null) throw new IllegalStateException("not as planned: an aggregate");
            }
            List scans = new ArrayList(answer.subList(at, answer.size()));
            return (LogicalPlan) owner.substitution.apply(
                new Object[] {plan, session, null, memory, told, scans, expressions}, MARK);
        }

        /** The rows of the operator that places among children lead to from a plan's root. */
        Dataset rows(LogicalPlan plan, String steps, List answer, List expressions)
                throws Exception {
            List places = (List) JSON.readValue(steps, List.class);
            for (int i = 0; i < places.size(); i++) {
                plan = (LogicalPlan) plan.children().apply(((Integer) places.get(i)).intValue());
            }
            return Dataset$.MODULE$.ofRows(session, changed(plan, answer, expressions));
        }

        /** Whether every column that is read comes from below; Spark looks at no subqueries. */
        private static boolean isWhole(LogicalPlan plan) {
            if (!plan.resolved() || !plan.missingInput().isEmpty()) return false;
            scala.collection.Iterator expressions = plan.expressions().iterator();
            while (expressions.hasNext()) {
                if (!isWhole((Expression) expressions.next(), plan)) return false;
            }
            scala.collection.Iterator below = plan.children().iterator();
            while (below.hasNext()) if (!isWhole((LogicalPlan) below.next())) return false;
            below = plan.subqueries().iterator();
            while (below.hasNext()) if (!isWhole((LogicalPlan) below.next())) return false;
            return true;
        }

        /** Whether conditions between a query and its subqueries read columns of either. */
        private static boolean isWhole(Expression expression, LogicalPlan plan) {
            scala.collection.Iterator below = expression.children().iterator();
            while (below.hasNext()) {
                Expression child = (Expression) below.next();
                if (expression instanceof SubqueryExpression) {
                    LogicalPlan inner = (LogicalPlan) ((SubqueryExpression) expression).plan();
                    if (!child.references().$minus$minus(plan.inputSet())
                            .$minus$minus(inner.outputSet()).isEmpty()) {
                        return false;
                    }
                }
                if (!isWhole(child, plan)) return false;
            }
            return true;
        }

        private static boolean sameColumns(LogicalPlan one, LogicalPlan other) {
            if (one.output().size() != other.output().size()) return false;
            for (int i = 0; i < one.output().size(); i++) {
                AttributeReference old = (AttributeReference) one.output().apply(i);
                AttributeReference made = (AttributeReference) other.output().apply(i);
                if (!old.exprId().equals(made.exprId()) || !old.name().equals(made.name())
                        || !old.dataType().equals(made.dataType())) {
                    return false;
                }
            }
            return true;
        }

        /** Leave tables of others to Spark, which puts their rows into other places than we do. */
        private void leaveOthers() {
            java.util.Iterator all = relations.values().iterator();
            while (all.hasNext()) if (!isOurs((LogicalPlan) all.next())) all.remove();
        }

        /** Whether Delta Spark would not read all of a plan as well: it groups, or looks at a Variant. */
        private boolean isAsked(LogicalPlan plan) {
            Set variants = new HashSet();
            java.util.Iterator all = relations.values().iterator();
            while (all.hasNext()) {
                LogicalPlan relation = (LogicalPlan) all.next();
                if (!isDelta(relation)) return true;
                for (int i = 0; i < relation.output().size(); i++) {
                    Attribute column = (Attribute) relation.output().apply(i);
                    if (column.dataType() instanceof VariantType) variants.add(column.exprId());
                }
            }
            return gives(plan, variants) || looks(plan, variants);
        }

        private static boolean gives(LogicalPlan plan, Set variants) {
            for (int i = 0; i < plan.output().size(); i++) {
                if (variants.contains(((Attribute) plan.output().apply(i)).exprId())) return true;
            }
            return false;
        }

        private static boolean looks(LogicalPlan plan, Set variants) {
            if (plan.children().isEmpty()) return false; // whose columns are expressions of it
            if (plan instanceof Aggregate) return true;
            scala.collection.Iterator expressions = plan.expressions().iterator();
            while (expressions.hasNext()) {
                if (looks((Expression) expressions.next(), variants)) return true;
            }
            boolean passes = PASSING.contains(plan.nodeName());
            for (int i = 0; i < plan.children().size(); i++) {
                LogicalPlan child = (LogicalPlan) plan.children().apply(i);
                if (!passes && gives(child, variants) || looks(child, variants)) return true;
            }
            scala.collection.Iterator below = plan.subqueries().iterator();
            while (below.hasNext()) {
                LogicalPlan inner = (LogicalPlan) below.next();
                if (gives(inner, variants) || looks(inner, variants)) return true;
            }
            return false;
        }

        private static boolean looks(Expression expression, Set variants) {
            if (expression instanceof Attribute) {
                return variants.contains(((Attribute) expression).exprId());
            }
            for (int i = 0; i < expression.children().size(); i++) {
                if (looks((Expression) expression.children().apply(i), variants)) return true;
            }
            return false;
        }

        /** Whether a plan says anything by which one way to run it differs from another. */
        private static boolean tellsPlaces(LogicalPlan plan) {
            if (PLACES.contains(plan.nodeName())) return true;
            scala.collection.Iterator expressions = plan.expressions().iterator();
            while (expressions.hasNext()) {
                if (tellsPlaces((Expression) expressions.next())) return true;
            }
            scala.collection.Iterator below = plan.children().iterator();
            while (below.hasNext()) if (tellsPlaces((LogicalPlan) below.next())) return true;
            below = plan.subqueries().iterator();
            while (below.hasNext()) if (tellsPlaces((LogicalPlan) below.next())) return true;
            return false;
        }

        private static boolean tellsPlaces(Expression expression) {
            if (PLACES.contains(expression.getClass().getSimpleName())) return true;
            scala.collection.Iterator below = expression.children().iterator();
            while (below.hasNext()) if (tellsPlaces((Expression) below.next())) return true;
            return false;
        }

        /** What Python is to know of each relation, whose name goes into `names` by its key. */
        private List requests(Map names) throws Exception {
            List found = new ArrayList();
            Set left = new HashSet();
            List entries = new ArrayList(relations.values());
            Object[] snapshots = new Object[entries.size()];
            for (int i = 0; i < snapshots.length; i++) {
                if (!isDelta((LogicalPlan) entries.get(i))) continue;
                LogicalRelation relation = (LogicalRelation) entries.get(i);
                Object index = ((HadoopFsRelation) relation.relation()).location();
                if (isWhole(relation, index)) snapshots[i] = snapshot(index);
                if (snapshots[i] == null || !sameSchema(index, snapshots[i])) {
                    left.add(call(index, "path"));
                }
            }
            for (int i = 0; i < snapshots.length; i++) {
                LogicalPlan plan = (LogicalPlan) entries.get(i);
                Map each = new LinkedHashMap();
                if (isDelta(plan)) {
                    Object relation = ((LogicalRelation) plan).relation();
                    Path path = (Path) call(((HadoopFsRelation) relation).location(), "path");
                    // All reads of a table in a query are of one version: ours, or Delta Spark's.
                    if (left.contains(path)) continue;
                    each.put("location", location(path));
                    each.put("version", call(snapshots[i], "version"));
                    each.put("id", call(call(snapshots[i], "metadata"), "id"));
                    Object segment = call(snapshots[i], "logSegment");
                    each.put("checkpoint", call(call(segment, "checkpointProvider"), "version"));
                    // A log that was restored from a backup goes on with versions of other rows.
                    each.put("commit", call(segment, "lastCommitFileModificationTimestamp"));
                } else if (isOurs(plan)) {
                    each.putAll((Map) ((Supplier) ((LogicalRelation) plan).relation()).get());
                } else {
                    DataSourceV2Relation relation = (DataSourceV2Relation) plan;
                    each.put("options", relation.options().asCaseSensitiveMap());
                }
                String name = MARK + names.size();
                each.put("name", name);
                each.put("delta", Boolean.valueOf(isDelta(plan)));
                found.add(each);
                names.put(key(plan), name);
            }
            return found;
        }

        /** Whether the schema is still the one that the query was analysed with. */
        private static boolean sameSchema(Object index, Object snapshot) throws Exception {
            return call(call(index, "metadata"), "schemaString")
                .equals(call(call(snapshot, "metadata"), "schemaString"));
        }

        private static String location(Path path) {
            String scheme = path.toUri().getScheme();
            return scheme == null || scheme.equals("file") ? path.toUri().getPath() : path.toString();
        }

        /** Whether a relation is all rows and columns of a table's version, and nothing more. */
        private static boolean isWhole(LogicalRelation relation, Object index) throws Exception {
            HadoopFsRelation files = (HadoopFsRelation) relation.relation();
            if (relation.isStreaming() || !files.fileFormat().getClass().getName().equals(FORMAT)) {
                return false;
            }
            if (!((scala.collection.Seq) call(index, "partitionFilters")).isEmpty()) return false;
            String[] names = files.schema().fieldNames();
            if (names.length != relation.output().size()) return false;
            for (int i = 0; i < names.length; i++) {
                AttributeReference column = (AttributeReference) relation.output().apply(i);
                if (!names[i].equals(column.name())) return false;
            }
            return true;
        }

        /** The version that Delta Spark would read; null for what a transaction has to know of. */
        private Object snapshot(Object index) throws Exception {
            if (((Boolean) call(index, "isTimeTravelQuery")).booleanValue()) {
                return call(index, "getSnapshot");
            }
            Class transactions = Class.forName(
                "org.apache.spark.sql.delta.OptimisticTransaction", true,
                index.getClass().getClassLoader());
            scala.Option active = (scala.Option)
                transactions.getMethod("getActive", new Class[0]).invoke(null, new Object[0]);
            if (active.isDefined()) {
                // What it reads of its own table decides about conflicts; others it pins.
                Object log = call(index, "deltaLog");
                if (call(call(active.get(), "deltaLog"), "compositeId")
                        .equals(call(log, "compositeId"))) {
                    return null;
                }
                Object generator = transactions
                    .getMethod("getDeltaScanGenerator", new Class[] {index.getClass()})
                    .invoke(active.get(), new Object[] {index});
                return call(generator, "snapshotToScan");
            }
            Object id = call(call(index, "deltaLog"), "compositeId");
            Object snapshot = memory.get(id);
            if (snapshot == null) {
                snapshot = call(index, "getSnapshot");
                memory.put(id, snapshot);
            }
            return snapshot;
        }

        private static Object call(Object target, String method) throws Exception {
            return target.getClass().getMethod(method, new Class[0]).invoke(target, new Object[0]);
        }

        private static scala.collection.immutable.Seq seq(List items) {
            return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
        }
    }
}

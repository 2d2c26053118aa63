import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BiFunction;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.rules.RuleExecutor;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf$;

/**
 * Puts scans in the place of relations, and columns in the place of what is read of a Variant.
 *
 * A Variant column that is read by paths alone becomes one column for each path, and one of the
 * Variant itself where some files are read natively. Whatever passes it on (a projection, a join)
 * passes these. Compiled by Janino: no lambdas, no generics.
 */
public class PathSubstitution implements BiFunction {
    private static final String NEXT = "Pre CBO Rules";
    private static final String EARLY = "Early Filter and Projection Push-Down";
    private static final int MOST_TURNS = 100;
    /** What Spark does to subqueries: ours are done with when what is round them comes. */
    private static final String SUBQUERIES = "OptimizeSubqueries";
    /** The batches of sessions, as an array of them and of the rules that were left out of them. */
    private final Map optimizers = Collections.synchronizedMap(new WeakHashMap());

    /**
     * @param task the plan; the session; what relations are to be called, by the id of their first
     *     column (then nothing else is done), or null; the relations that had the names of marks;
     *     what the planner tells, or null; its scans, in the order in which that names them; the
     *     expressions that it tells of by number
     * @param mark the beginning of the names of relations
     */
    public Object apply(Object task, Object mark) {
        Object[] given = (Object[]) task;
        Walk walk = new Walk(
            this, (SparkSession) given[1], (String) mark, (Map) given[2], (Map) given[3]);
        if (given[4] != null) walk.take((Map) given[4], (List) given[5], (List) given[6]);
        LogicalPlan found = walk.region(walk.plan((LogicalPlan) given[0]));
        return walk.passed ? ColumnPruning$.MODULE$.apply(found) : found;
    }

    /**
     * The batches that a plan has been through when our rule comes, and the one that looks into
     * scans. Spark makes an optimizer, with all of its rules, whenever it is asked for one.
     */
    private List[] batches(SparkSession session) {
        Object excluded = SQLConf$.MODULE$.get().optimizerExcludedRules();
        SoftReference known = (SoftReference) optimizers.get(session);
        Object[] found = known == null ? null : (Object[]) known.get();
        if (found == null || !found[0].equals(excluded)) {
            List[] batches = new List[] {new ArrayList(), new ArrayList()};
            boolean next = false;
            scala.collection.Iterator all = session.sessionState().optimizer().batches().iterator();
            while (all.hasNext()) {
                RuleExecutor.Batch each = (RuleExecutor.Batch) all.next();
                next |= each.name().equals(NEXT);
                if (!next) batches[0].add(each);
                if (each.name().equals(EARLY)) batches[1].add(each);
            }
            if (!next) throw new IllegalStateException("the optimizer has no batch " + NEXT);
            found = new Object[] {excluded, batches};
            optimizers.put(session, new SoftReference(found));
        }
        return (List[]) found[1];
    }

    /** What a Variant column became; `variant` is null where no file is read natively. */
    private static class Fields {
        final Attribute[] paths;
        final Attribute variant;

        Fields(Attribute[] paths, Attribute variant) {
            this.paths = paths;
            this.variant = variant;
        }
    }

    private static class Walk {
        boolean passed = false;
        private final PathSubstitution owner;
        private final SparkSession session;
        private final String mark;
        private final Map names;
        private final Map originals;
        private Map scans = new HashMap();
        private Map columns = new HashMap();
        private final Map uses = new IdentityHashMap();
        private final Map dropped = new IdentityHashMap();
        /** By the id of the Variant column that they stand for. */
        private final Map fields = new HashMap();
        private final Map made = new IdentityHashMap();
        private boolean unmarked = false;

        Walk(
                PathSubstitution owner, SparkSession session, String mark, Map names,
                Map originals) {
            this.owner = owner;
            this.session = session;
            this.mark = mark;
            this.names = names;
            this.originals = originals;
        }

        void take(Map told, List frames, List expressions) {
            List relations = (List) told.get("relations");
            for (int i = 0; i < relations.size(); i++) {
                Map each = (Map) relations.get(i);
                scans.put(each.get("name"), ((Dataset) frames.get(i)).queryExecution().analyzed());
                columns.put(each.get("name"), each.get("columns"));
            }
            List used = (List) told.get("uses");
            for (int i = 0; i < used.size(); i++) {
                List use = (List) used.get(i);
                uses.put(expressions.get(((Integer) use.get(0)).intValue()), use.get(1));
            }
            List implied = (List) told.get("implied");
            for (int i = 0; i < implied.size(); i++) {
                dropped.put(expressions.get(((Integer) implied.get(i)).intValue()), Boolean.TRUE);
            }
        }

        LogicalPlan plan(LogicalPlan plan) {
            if (plan instanceof SubqueryAlias
                    && ((SubqueryAlias) plan).alias().startsWith(mark)) {
                LogicalPlan scan = (LogicalPlan) scans.get(((SubqueryAlias) plan).alias());
                unmarked = true;
                LogicalPlan below = (LogicalPlan) plan.children().head();
                LogicalPlan original = (LogicalPlan) originals.get(((SubqueryAlias) plan).alias());
                if (original == null) {
                    return scan == null ? plan(below) : scanned((SubqueryAlias) plan, below, scan);
                }
                LogicalPlan over = plan(original);
                return sameIds(over, plan) ? over : new Project(plan.output(), over);
            }
            if (names != null && plan.children().isEmpty() && plan.output().size() > 0) {
                Object key = Long.valueOf(((Attribute) plan.output().head()).exprId().id());
                Object name = names.get(key);
                return name == null ? plan : SubqueryAlias$.MODULE$.apply((String) name, plan);
            }
            List children = new ArrayList();
            boolean changed = false;
            boolean inRegion = plan instanceof Project || plan instanceof Filter;
            for (int i = 0; i < plan.children().size(); i++) {
                LogicalPlan child = (LogicalPlan) plan.children().apply(i);
                LogicalPlan other = plan(child);
                if (!inRegion) other = region(other);
                changed |= other != child;
                children.add(other);
            }
            LogicalPlan over = changed ? (LogicalPlan) plan.withNewChildren(seq(children)) : plan;
            if (plan instanceof Project) return projected((Project) over);
            if (plan instanceof Expand) return expanded((Expand) over);
            if (plan.children().isEmpty()) return over;
            return (LogicalPlan) over.mapExpressions(new Rewrite(this));
        }

        private static boolean sameIds(LogicalPlan one, LogicalPlan other) {
            if (one.output().size() != other.output().size()) return false;
            for (int i = 0; i < one.output().size(); i++) {
                if (!((Attribute) one.output().apply(i)).exprId().equals(
                        ((Attribute) other.output().apply(i)).exprId())) {
                    return false;
                }
            }
            return true;
        }

        /** A scan whose columns have the ids of the relation's. */
        private LogicalPlan scanned(SubqueryAlias alias, LogicalPlan relation, LogicalPlan scan) {
            Map read = (Map) columns.get(alias.alias());
            List items = new ArrayList();
            for (int i = 0; i < relation.output().size(); i++) {
                AttributeReference old = (AttributeReference) relation.output().apply(i);
                Attribute found = (Attribute) scan.output().apply(i);
                check(old.name().equals(found.name()), "column " + old.name() + " is " + found.name());
                Map way = (Map) read.get(old.name());
                if (way == null) continue; // nobody looks at it
                if (way.get("paths") != null) {
                    int count = ((Integer) way.get("paths")).intValue();
                    Attribute[] paths = new Attribute[count];
                    for (int at = 0; at < count; at++) paths[at] = field(old, found, at, items);
                    Attribute variant = null;
                    if (Boolean.TRUE.equals(way.get("native"))) variant = field(old, found, count, items);
                    fields.put(Long.valueOf(old.exprId().id()), new Fields(paths, variant));
                    continue;
                }
                check(old.dataType().equals(found.dataType()), "type of column " + old.name());
                Expression value = (Expression) found;
                if (!old.nullable() && found.nullable()) value = new KnownNotNull(value);
                items.add(new Alias(
                    value, old.name(), old.exprId(), old.qualifier(),
                    scala.Option.apply(old.metadata()), none()));
            }
            LogicalPlan over = new Project(seq(items), scan);
            made.put(over, Boolean.TRUE);
            return over;
        }

        private static Attribute field(Attribute old, Attribute struct, int at, List items) {
            Alias alias = new Alias(
                new GetStructField((Expression) struct, at, scala.Option.empty()),
                old.name() + "_" + at, NamedExpression$.MODULE$.newExprId(), none(),
                scala.Option.empty(), none());
            items.add(alias);
            return alias.toAttribute();
        }

        private LogicalPlan projected(Project plan) {
            List items = new ArrayList();
            boolean changed = false;
            for (int i = 0; i < plan.projectList().size(); i++) {
                NamedExpression item = (NamedExpression) plan.projectList().apply(i);
                Object source = item instanceof Alias ? ((Alias) item).child() : item;
                Fields old = source instanceof Attribute
                    ? (Fields) fields.get(Long.valueOf(((Attribute) source).exprId().id())) : null;
                if (old != null) {
                    changed = true;
                    passed = true;
                    pass(old, item, items);
                    continue;
                }
                Object other = rewritten((Expression) item);
                changed |= other != item;
                items.add(other);
            }
            if (!changed) return plan;
            LogicalPlan over = new Project(seq(items), (LogicalPlan) plan.child());
            return over;
        }

        /** A ROLLUP or CUBE, which gives each row several times and passes its Variants on. */
        private LogicalPlan expanded(Expand plan) {
            List output = items(plan.output());
            List projections = new ArrayList();
            for (int i = 0; i < plan.projections().size(); i++) {
                List items = items((scala.collection.Seq) plan.projections().apply(i));
                check(items.size() == output.size(), "the columns of an Expand");
                projections.add(seq(items));
            }
            return new Expand(seq(projections), seq(output), (LogicalPlan) plan.child());
        }

        private List items(scala.collection.Seq expressions) {
            List items = new ArrayList();
            for (int i = 0; i < expressions.size(); i++) {
                Expression item = (Expression) expressions.apply(i);
                Fields old = item instanceof Attribute
                    ? (Fields) fields.get(Long.valueOf(((Attribute) item).exprId().id())) : null;
                if (old == null) {
                    items.add(rewritten(item));
                } else {
                    passed = true;
                    pass(old, (Attribute) item, items);
                }
            }
            return items;
        }

        /** What became of a column, as a projection's items; of a renamed one under new ids. */
        private void pass(Fields old, NamedExpression item, List items) {
            if (!(item instanceof Alias)) {
                for (int i = 0; i < old.paths.length; i++) items.add(old.paths[i]);
                if (old.variant != null) items.add(old.variant);
                return;
            }
            Attribute[] paths = new Attribute[old.paths.length];
            for (int i = 0; i < paths.length; i++) paths[i] = renamed(old.paths[i], items);
            Attribute variant = old.variant == null ? null : renamed(old.variant, items);
            fields.put(Long.valueOf(item.exprId().id()), new Fields(paths, variant));
        }

        private static Attribute renamed(Attribute old, List items) {
            Alias alias = new Alias(
                (Expression) old, old.name(), NamedExpression$.MODULE$.newExprId(), none(),
                scala.Option.empty(), none());
            items.add(alias);
            return alias.toAttribute();
        }

        Expression rewritten(Expression old) {
            if (dropped.containsKey(old)) return Literal$.MODULE$.apply(Boolean.TRUE);
            Object use = uses.get(old);
            if (use != null) return used(old, ((Integer) use).intValue());
            Expression over = old;
            if (old instanceof SubqueryExpression) {
                SubqueryExpression outer = (SubqueryExpression) old;
                boolean before = unmarked;
                unmarked = false;
                LogicalPlan inner = (LogicalPlan) outer.plan();
                LogicalPlan other = region(plan(inner));
                // Spark's own rules passed it by when it was optimized.
                if (unmarked && (names == null || names.isEmpty())) other = turns(early(), other);
                unmarked |= before;
                if (other != inner) over = over(outer, other);
            }
            if (over.children().isEmpty()) return over;
            List children = new ArrayList();
            boolean changed = false;
            for (int i = 0; i < over.children().size(); i++) {
                Expression child = (Expression) over.children().apply(i);
                Expression other = rewritten(child);
                if (over instanceof SubqueryExpression) {
                    other = columnsOf((LogicalPlan) ((SubqueryExpression) over).plan(), other);
                }
                changed |= other != child;
                children.add(other);
            }
            return changed ? (Expression) ((TreeNode) over).withNewChildren(seq(children)) : over;
        }

        /**
         * A condition with a subquery's columns as that has them. Spark prunes what no condition
         * asks for, and compares columns by all that they are, qualifiers too.
         */
        private static Expression columnsOf(LogicalPlan inner, Expression condition) {
            if (condition instanceof Attribute) {
                for (int i = 0; i < inner.output().size(); i++) {
                    Attribute column = (Attribute) inner.output().apply(i);
                    if (column.exprId().equals(((Attribute) condition).exprId())) {
                        return (Expression) column;
                    }
                }
                return condition;
            }
            if (condition.children().isEmpty()) return condition;
            List children = new ArrayList();
            for (int i = 0; i < condition.children().size(); i++) {
                children.add(columnsOf(inner, (Expression) condition.children().apply(i)));
            }
            return (Expression) ((TreeNode) condition).withNewChildren(seq(children));
        }

        /** The subquery over another plan; its errors show the same text. */
        private static Expression over(SubqueryExpression subquery, LogicalPlan plan) {
            Origin before = CurrentOrigin$.MODULE$.get();
            CurrentOrigin$.MODULE$.set(subquery.origin());
            try {
                return (Expression) subquery.withNewPlan(plan);
            } finally {
                CurrentOrigin$.MODULE$.set(before);
            }
        }

        /** A path's column; in rows of files that are read natively, what the query says. */
        private Expression used(Expression old, int at) {
            Attribute column = attribute(old);
            Fields found = (Fields) fields.get(Long.valueOf(column.exprId().id()));
            check(found != null, "nothing is read of " + column.name());
            Expression path = (Expression) found.paths[at];
            if (old.children().apply(0) == column && old.children().size() == 1) {
                List only = new ArrayList();
                only.add(path);
                return (Expression) ((TreeNode) old).withNewChildren(seq(only)); // a test for NULL
            }
            check(path.dataType().equals(old.dataType()), "type of a path of " + column.name());
            if (found.variant == null) return path;
            List either = new ArrayList();
            either.add(path);
            either.add(over(old, column, (Expression) found.variant));
            return new Coalesce(seq(either));
        }

        private static Attribute attribute(Expression old) {
            while (!(old instanceof Attribute)) old = (Expression) old.children().head();
            return (Attribute) old;
        }

        private static Expression over(Expression old, Attribute column, Expression other) {
            if (old == column) return other;
            List children = new ArrayList();
            for (int i = 0; i < old.children().size(); i++) {
                children.add(i > 0 ? old.children().apply(i)
                    : over((Expression) old.children().head(), column, other));
            }
            return (Expression) ((TreeNode) old).withNewChildren(seq(children));
        }

        /** What stands on a scan, projections and filters, optimized as a query of its own. */
        LogicalPlan region(LogicalPlan plan) {
            LogicalPlan below = plan;
            while (!made.containsKey(below)) {
                if (!(below instanceof Project || below instanceof Filter)) return plan;
                below = (LogicalPlan) below.children().head();
            }
            return withIds(turns(before(), plan), plan);
        }

        /** The plan with the ids that its columns had: Spark takes away aliases, those of a root too. */
        private static LogicalPlan withIds(LogicalPlan plan, LogicalPlan before) {
            List items = new ArrayList();
            boolean changed = false;
            check(plan.output().size() == before.output().size(), "the number of columns");
            for (int i = 0; i < plan.output().size(); i++) {
                Attribute old = (Attribute) before.output().apply(i);
                Attribute found = (Attribute) plan.output().apply(i);
                if (old.exprId().equals(found.exprId())) {
                    items.add(found);
                    continue;
                }
                changed = true;
                items.add(new Alias(
                    (Expression) found, old.name(), old.exprId(), old.qualifier(),
                    scala.Option.apply(old.metadata()), none()));
            }
            if (!changed) return plan;
            return CollapseProject$.MODULE$.apply(new Project(seq(items), plan));
        }

        /** The batches of the optimizer that a plan has been through when our rule comes. */
        private List before() {
            return owner.batches(session)[0];
        }

        /** The batch that looks into scans. */
        private List early() {
            return owner.batches(session)[1];
        }

        private LogicalPlan turns(List batches, LogicalPlan plan) {
            for (int b = 0; b < batches.size(); b++) {
                RuleExecutor.Batch batch = (RuleExecutor.Batch) batches.get(b);
                int most = Math.min(MOST_TURNS, batch.strategy().maxIterations());
                for (int turn = 0; turn < most; turn++) {
                    LogicalPlan before = plan;
                    scala.collection.Iterator rules = batch.rules().iterator();
                    while (rules.hasNext()) {
                        Rule rule = (Rule) rules.next();
                        if (rule.ruleName().endsWith(SUBQUERIES)) continue;
                        plan = (LogicalPlan) rule.apply((TreeNode) plan);
                    }
                    if (plan.fastEquals(before)) break;
                }
            }
            return plan;
        }

        private static void check(boolean right, String wrong) {
            if (!right) throw new IllegalStateException("not as planned: " + wrong);
        }
    }

    private static class Rewrite extends scala.runtime.AbstractFunction1 {
        private final Walk walk;

        Rewrite(Walk walk) {
            this.walk = walk;
        }

        public Object apply(Object expression) {
            return walk.rewritten((Expression) expression);
        }
    }

    static scala.collection.immutable.Seq seq(List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }

    static scala.collection.immutable.Seq none() {
        return seq(new ArrayList());
    }
}

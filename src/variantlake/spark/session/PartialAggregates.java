import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.DataType;

/**
 * Puts partial rows of groups in the place of what an aggregate reads.
 *
 * The aggregate stays, with the same columns by name, type and id, so that all above it stays as it
 * is; its functions become those that merge. Compiled by Janino: no lambdas, no generics.
 */
public class PartialAggregates implements BiFunction {
    /**
     * A plan with partial rows below its aggregate over a view; null where it is not as expected.
     *
     * `view` tells the name of that. The columns of the rows are `keys`, one for each of GROUP BY,
     * and others that `merges` tells of: an object for each aggregate function, in the order of the
     * plan. `how` it merges, `function` that it is the class of, `columns` of its own by number,
     * `filter` the column of its FILTER or null. Where it is `done` no two rows are of one group:
     * they take the place of the aggregate, without a FILTER, and nothing is merged.
     *
     * @param task the plan, and an object that tells these
     */
    public Object apply(Object task, Object rows) {
        Merging merging = new Merging((Map) ((Object[]) task)[1], (Dataset) rows);
        LogicalPlan found = merging.plan((LogicalPlan) ((Object[]) task)[0]);
        return merging.failed || merging.found != 1 ? null : found;
    }

    private static class Merging {
        boolean failed = false;
        int found = 0;
        private final String view;
        private final LogicalPlan rows;
        private final Attribute[] columns;
        private final int keys;
        private final List functions;
        private final boolean done;
        private int next = 0;
        private Expression[] grouping;

        Merging(Map told, Dataset partial) {
            view = (String) told.get("view");
            rows = partial.queryExecution().analyzed();
            keys = ((Integer) told.get("keys")).intValue();
            functions = (List) told.get("merges");
            done = ((Boolean) told.get("done")).booleanValue();
            columns = new Attribute[rows.output().size()];
            for (int i = 0; i < columns.length; i++) columns[i] = (Attribute) rows.output().apply(i);
        }

        LogicalPlan plan(LogicalPlan plan) {
            if (plan instanceof Aggregate && reads((LogicalPlan) plan.children().head())) {
                found++;
                return merged((Aggregate) plan);
            }
            List children = new ArrayList();
            boolean changed = false;
            for (int i = 0; i < plan.children().size(); i++) {
                LogicalPlan child = (LogicalPlan) plan.children().apply(i);
                LogicalPlan other = plan(child);
                changed |= other != child;
                children.add(other);
            }
            return changed ? (LogicalPlan) plan.withNewChildren(sequence(children)) : plan;
        }

        /** Whether nothing stands between the operator above and the view but rows chosen. */
        private boolean reads(LogicalPlan plan) {
            while (true) {
                if (plan instanceof SubqueryAlias
                        && String.valueOf(((SubqueryAlias) plan).identifier()).equals(view)) {
                    return true;
                }
                if (!(plan instanceof SubqueryAlias || plan instanceof Project
                        || plan instanceof Filter)) {
                    return false;
                }
                plan = (LogicalPlan) plan.children().head();
            }
        }

        private LogicalPlan merged(Aggregate plan) {
            if (plan.groupingExpressions().size() != keys) failed = true;
            if (failed) return plan;
            grouping = new Expression[keys];
            List by = new ArrayList();
            for (int i = 0; i < keys; i++) {
                grouping[i] = (Expression) plan.groupingExpressions().apply(i);
                by.add(columns[i]);
            }
            List items = new ArrayList();
            for (int i = 0; i < plan.aggregateExpressions().size(); i++) {
                items.add(item((NamedExpression) plan.aggregateExpressions().apply(i)));
                if (failed) return plan;
            }
            LogicalPlan made = done
                ? new Project(sequence(items), rows)
                : new Aggregate(sequence(by), sequence(items), rows, plan.hint());
            if (next != functions.size() || !made.resolved() || !alike(plan, made)) failed = true;
            return made;
        }

        private NamedExpression item(NamedExpression old) {
            Expression value = (Expression) old;
            scala.collection.immutable.Seq none = sequence(new ArrayList());
            if (old instanceof Alias) value = ((Alias) old).child();
            return new Alias(
                above(value), old.name(), old.exprId(), old.qualifier(),
                scala.Option.apply(old.metadata()), none);
        }

        /** What an expression above the old aggregate is above the new one. */
        private Expression above(Expression old) {
            for (int i = 0; i < keys; i++) {
                if (old.semanticEquals(grouping[i])) {
                    if (grouping[i].nullable()) return (Expression) columns[i];
                    return new AssertNotNull((Expression) columns[i], sequence(new ArrayList()));
                }
            }
            if (old instanceof AggregateExpression) return function((AggregateExpression) old);
            if (old instanceof Attribute) failed = true;
            if (failed || old.children().isEmpty()) return old;
            List children = new ArrayList();
            for (int i = 0; i < old.children().size(); i++) {
                children.add(above((Expression) old.children().apply(i)));
            }
            return (Expression) ((TreeNode) old).withNewChildren(sequence(children));
        }

        private Expression function(AggregateExpression old) {
            AggregateFunction function = old.aggregateFunction();
            Map merge = next < functions.size() ? (Map) functions.get(next++) : null;
            if (merge == null || !function.nodeName().equals(merge.get("function"))) {
                failed = true;
                return old;
            }
            Object place = merge.get("filter");
            scala.Option filter = scala.Option.apply(
                place == null ? null : columns[((Integer) place).intValue()]);
            if (old.filter().isDefined() != filter.isDefined()) failed = true;
            List own = new ArrayList();
            for (int i = 0; i < ((List) merge.get("columns")).size(); i++) {
                own.add(columns[((Integer) ((List) merge.get("columns")).get(i)).intValue()]);
            }
            Expression first = (Expression) own.get(0);
            String how = (String) merge.get("how");
            if (how.equals("count")) return counted(first, filter);
            if (how.equals("mean")) {
                return mean((Average) function, first, (Expression) own.get(1), filter);
            }
            if (done) return as(first, function.dataType());
            AggregateFunction other = (AggregateFunction)
                ((TreeNode) function).withNewChildren(sequence(own));
            Expression found = other.toAggregateExpression(old.isDistinct(), filter);
            return as(found, function.dataType());
        }

        private Expression sum(Expression column, scala.Option filter) {
            return done ? column : new Sum(column).toAggregateExpression(false, filter);
        }

        private Expression counted(Expression column, scala.Option filter) {
            List either = new ArrayList();
            either.add(sum(column, filter));
            either.add(Literal$.MODULE$.apply(Long.valueOf(0)));
            return new Coalesce(sequence(either));
        }

        /** The quotient as Spark writes it, over sums of partial sums and counts. */
        private Expression mean(
                Average old, Expression sum, Expression count, scala.Option filter) {
            Attribute one = (Attribute) old.aggBufferAttributes().apply(0);
            Attribute other = (Attribute) old.aggBufferAttributes().apply(1);
            Expression total = sum(as(sum, one.dataType()), filter);
            return put(
                old.evaluateExpression(), one, as(total, one.dataType()),
                other, counted(count, filter));
        }

        private static Expression put(
                Expression old, Attribute one, Expression its, Attribute other, Expression theirs) {
            if (old.semanticEquals((Expression) one)) return its;
            if (old.semanticEquals((Expression) other)) return theirs;
            if (old.children().isEmpty()) return old;
            List children = new ArrayList();
            for (int i = 0; i < old.children().size(); i++) {
                children.add(put((Expression) old.children().apply(i), one, its, other, theirs));
            }
            return (Expression) ((TreeNode) old).withNewChildren(sequence(children));
        }

        /** A sum of sums of decimals as one of the type that a sum has. */
        private static Expression as(Expression value, DataType type) {
            if (value.dataType().equals(type)) return value;
            return new Cast(value, type, scala.Option.empty(), EvalMode$.MODULE$.LEGACY());
        }

        private static boolean alike(LogicalPlan one, LogicalPlan other) {
            if (one.output().size() != other.output().size()) return false;
            for (int i = 0; i < one.output().size(); i++) {
                Attribute old = (Attribute) one.output().apply(i);
                Attribute made = (Attribute) other.output().apply(i);
                if (!old.exprId().equals(made.exprId()) || !old.name().equals(made.name())
                        || !old.dataType().equals(made.dataType())
                        || old.nullable() != made.nullable()
                        || !old.metadata().equals(made.metadata())) {
                    return false;
                }
            }
            return true;
        }

        private static scala.collection.immutable.Seq sequence(List items) {
            return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
        }
    }
}

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;

import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.types.DataType;

/**
 * Writes a Catalyst plan as JSON inside the JVM: one crossing from Python instead of a call for
 * each field of each node (0.15 ms each, a thousand for a plain query).
 *
 * Spark's own `toJSON` has neither the positions in the SQL text nor the plans of subqueries.
 * Compiled by Janino, which Spark ships for its generated code: no lambdas, no generics.
 * The Python side, `catalyst.Node`, says what the members are.
 */
public class PlanDump implements BiFunction {
    /** Constructor arguments that the analysis reads; the others may be large. */
    private static final Set ARGUMENTS = new HashSet(Arrays.asList(new Object[] {
        "joinType", "cteId", "id", "identifier", "multipartIdentifier", "name", "nameParts",
        "targetType", "failOnError", "evalMode", "escapeChar", "options", "isStreaming", "version",
        "allowRecursion", "isDistinct", "evalContext", "direction", "nullOrdering", "global",
        "timeZoneId"
    }));

    /**
     * @param text the SQL text, whose positions are told; or an array of a List, which takes in the
     *     expressions (each then tells its place in it as its `number`), and of null, in the place
     *     of which comes the text that the first of them stands in, and of a Map, through which
     *     the ids of columns become numbers that are the same for each query of this shape
     */
    public Object apply(Object plan, Object text) {
        StringBuilder out = new StringBuilder();
        plan((LogicalPlan) plan, text, out);
        return out.toString();
    }

    private static void plan(LogicalPlan plan, Object text, StringBuilder out) {
        head(plan, text, out);
        out.append(",\"output\":[");
        if (plan.resolved()) {
            scala.collection.Iterator output = plan.output().iterator();
            while (output.hasNext()) {
                Attribute attribute = (Attribute) output.next();
                out.append('[').append(id(attribute, text)).append(',');
                string(attribute.name(), out);
                out.append(']');
                if (output.hasNext()) out.append(',');
            }
        }
        out.append("],\"expressions\":[");
        expressions(plan.expressions().iterator(), text, out);
        out.append("],\"children\":[");
        plans(plan.children().iterator(), text, out, true);
        if (plan instanceof RelationTimeTravel) {
            plan(((RelationTimeTravel) plan).relation(), text, out);
        } else if (plan.nodeName().equals("UnresolvedWith") || plan instanceof Command) {
            plans(inner(plan), text, out, plan.children().isEmpty());
        }
        out.append("]}");
    }

    /** The definitions of a WITH, the query of an EXPLAIN: plans that are not children. */
    private static scala.collection.Iterator inner(LogicalPlan plan) {
        java.util.List found = new java.util.ArrayList();
        scala.collection.Iterator nodes = plan.innerChildren().iterator();
        if (plan instanceof ExplainCommand) found.add(((ExplainCommand) plan).logicalPlan());
        while (nodes.hasNext()) {
            Object node = nodes.next();
            if (node instanceof LogicalPlan && !plan.children().contains(node)) found.add(node);
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(found).iterator();
    }

    private static void plans(
            scala.collection.Iterator nodes, Object text, StringBuilder out, boolean first) {
        while (nodes.hasNext()) {
            if (!first) out.append(',');
            first = false;
            plan((LogicalPlan) nodes.next(), text, out);
        }
    }

    private static void expressions(
            scala.collection.Iterator nodes, Object text, StringBuilder out) {
        while (nodes.hasNext()) {
            expression((Expression) nodes.next(), text, out);
            if (nodes.hasNext()) out.append(',');
        }
    }

    private static void expression(Expression node, Object text, StringBuilder out) {
        // What Spark's optimizer makes of an IN with many values.
        if (node instanceof InSet) node = in((InSet) node);
        head(node, text, out);
        if (text instanceof Object[]) {
            List numbered = (List) ((Object[]) text)[0];
            out.append(",\"number\":").append(numbered.size());
            numbered.add(node);
        }
        if (node.resolved()) {
            if (node instanceof NamedExpression) {
                out.append(",\"expr_id\":").append(id((NamedExpression) node, text));
            }
            String type = type(node);
            if (type != null) {
                out.append(",\"type\":");
                string(type, out);
            }
            if (node.foldable()) folded(node, out);
            if (!node.deterministic()) out.append(",\"deterministic\":false");
        }
        if (node instanceof PlanExpression && ((PlanExpression) node).plan() instanceof LogicalPlan) {
            out.append(",\"plan\":");
            plan((LogicalPlan) ((PlanExpression) node).plan(), text, out);
        }
        out.append(",\"children\":[");
        expressions(node.children().iterator(), text, out);
        out.append("]}");
    }

    private static long id(NamedExpression column, Object text) {
        Long id = Long.valueOf(column.exprId().id());
        if (!(text instanceof Object[])) return id.longValue();
        Map numbers = (Map) ((Object[]) text)[2];
        if (!numbers.containsKey(id)) numbers.put(id, Long.valueOf(numbers.size()));
        return ((Long) numbers.get(id)).longValue();
    }

    private static Expression in(InSet node) {
        List values = new ArrayList();
        scala.collection.Iterator found = node.hset().iterator();
        while (found.hasNext()) values.add(new Literal(found.next(), node.child().dataType()));
        return new In(
            node.child(), scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq());
    }

    private static String type(Expression node) {
        try {
            return node.dataType().sql();
        } catch (Throwable error) {
            return null; // window frames and the like have no type
        }
    }

    /** A constant's value as text, null for NULL; no member where Spark cannot tell it yet. */
    private static void folded(Expression node, StringBuilder out) {
        Object value;
        try {
            value = node.eval(null);
        } catch (Throwable error) {
            return; // current_timestamp(), or a constant that fails
        }
        out.append(",\"folded\":");
        if (value == null) {
            out.append("null");
        } else if (value instanceof byte[]) {
            byte[] bytes = (byte[]) value;
            StringBuilder hex = new StringBuilder();
            for (int i = 0; i < bytes.length; i++) {
                hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16));
                hex.append(Character.forDigit(bytes[i] & 15, 16));
            }
            string(hex.toString(), out);
        } else {
            string(value.toString(), out);
        }
    }

    private static void head(TreeNode node, Object text, StringBuilder out) {
        out.append("{\"name\":");
        string(node.nodeName(), out);
        Origin origin = node.origin();
        if (origin.startIndex().isDefined() && origin.stopIndex().isDefined()
                && origin.sqlText().isDefined() && isOf(origin.sqlText().get(), text)) {
            out.append(",\"start\":").append(origin.startIndex().get());
            out.append(",\"stop\":").append(((Integer) origin.stopIndex().get()).intValue() + 1);
        }
        out.append(",\"arguments\":{");
        scala.Product product = (scala.Product) node;
        boolean first = true;
        for (int i = 0; i < product.productArity(); i++) {
            String name = product.productElementName(i);
            Object value = product.productElement(i);
            if (!ARGUMENTS.contains(name) || value instanceof TreeNode) continue;
            if (!first) out.append(',');
            first = false;
            string(name, out);
            out.append(':');
            argument(value, out);
        }
        out.append('}');
    }

    private static boolean isOf(Object own, Object text) {
        if (!(text instanceof Object[])) return own.equals(text);
        Object[] first = (Object[]) text;
        if (first[1] == null) first[1] = own;
        return own.equals(first[1]);
    }

    private static void argument(Object value, StringBuilder out) {
        if (value instanceof java.util.Map) {
            string(((java.util.Map) value).isEmpty() ? "" : "set", out); // options
        } else if (value instanceof scala.collection.Seq) {
            out.append('[');
            scala.collection.Iterator items = ((scala.collection.Seq) value).iterator();
            while (items.hasNext()) {
                string(String.valueOf(items.next()), out);
                if (items.hasNext()) out.append(',');
            }
            out.append(']');
        } else if (value instanceof scala.Option) {
            scala.Option option = (scala.Option) value;
            if (option.isDefined()) argument(option.get(), out);
            else out.append("null");
        } else if (value instanceof DataType) {
            string(((DataType) value).sql(), out);
        } else {
            string(String.valueOf(value), out);
        }
    }

    private static void string(String value, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append("\\u");
                for (int shift = 12; shift >= 0; shift -= 4) {
                    out.append(Character.forDigit((c >> shift) & 15, 16));
                }
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.Metadata;

/**
 * Finds the files behind a DataFrame that is nothing but columns of local Parquet files.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class FileScan implements Function {
    private static final Set OPTIONS = new HashSet();

    static {
        OPTIONS.add("path");
        OPTIONS.add("paths");
    }

    /**
     * JSON of `paths`, their `sizes` in bytes, and `columns`: pairs of a column's name in the
     * frame and in the files. Null for any other DataFrame: one that computes, filters or is
     * cached, that has partition columns or options of reading.
     */
    public Object apply(Object frame) {
        try {
            return found(((Dataset) frame).queryExecution().withCachedData());
        } catch (java.io.IOException error) {
            return null;
        }
    }

    private static String found(LogicalPlan plan) throws java.io.IOException {
        List names = new ArrayList();
        List wanted = new ArrayList();
        scala.collection.Iterator output = plan.output().iterator();
        while (output.hasNext()) {
            Attribute attribute = (Attribute) output.next();
            names.add(attribute.name());
            wanted.add(Long.valueOf(attribute.exprId().id()));
        }
        while (!(plan instanceof LogicalRelation)) {
            if (plan instanceof Project) {
                Map from = sources((Project) plan);
                if (from == null) return null;
                for (int i = 0; i < wanted.size(); i++) wanted.set(i, from.get(wanted.get(i)));
            } else if (!(plan instanceof SubqueryAlias)) {
                return null;
            }
            plan = (LogicalPlan) plan.children().head();
        }
        LogicalRelation leaf = (LogicalRelation) plan;
        if (leaf.isStreaming() || leaf.catalogTable().isDefined()) return null;
        if (!(leaf.relation() instanceof HadoopFsRelation)) return null;
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        // Exactly these: Delta's own, for one, are classes derived from them.
        if (relation.fileFormat().getClass() != ParquetFileFormat.class) return null;
        if (relation.location().getClass() != InMemoryFileIndex.class) return null;
        if (relation.partitionSchema().length() > 0) return null;
        scala.collection.Iterator options = relation.options().keysIterator();
        while (options.hasNext()) if (!OPTIONS.contains(options.next())) return null;
        Map stored = new HashMap();
        scala.collection.Iterator columns = leaf.output().iterator();
        while (columns.hasNext()) {
            Attribute attribute = (Attribute) columns.next();
            // Ids of fields, lengths of texts: what Spark does about them is not repeated here.
            if (!attribute.metadata().equals(Metadata.empty())) return null;
            stored.put(Long.valueOf(attribute.exprId().id()), attribute.name());
        }
        List pairs = new ArrayList();
        for (int i = 0; i < names.size(); i++) {
            Object name = stored.get(wanted.get(i));
            if (name == null) return null;
            pairs.add(new Object[] {names.get(i), name});
        }
        return document(relation, pairs);
    }

    /** Which attribute each column of a projection is; null where one of them is computed. */
    private static Map sources(Project project) {
        Map from = new HashMap();
        scala.collection.Iterator items = project.projectList().iterator();
        while (items.hasNext()) {
            Object item = items.next();
            Object source = item instanceof Alias ? ((Alias) item).child() : item;
            if (!(source instanceof Attribute)) return null;
            from.put(
                Long.valueOf(((NamedExpression) item).exprId().id()),
                Long.valueOf(((Attribute) source).exprId().id()));
        }
        return from;
    }

    private static String document(HadoopFsRelation relation, List columns)
            throws java.io.IOException {
        List paths = new ArrayList();
        List sizes = new ArrayList();
        scala.collection.immutable.Seq none =
            (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$;
        scala.collection.Iterator folders = relation.location().listFiles(none, none).iterator();
        while (folders.hasNext()) {
            scala.collection.Iterator files =
                ((PartitionDirectory) folders.next()).files().iterator();
            while (files.hasNext()) {
                FileStatus status = ((FileStatusWithMetadata) files.next()).fileStatus();
                Path path = status.getPath();
                if (!"file".equals(path.toUri().getScheme())) return null;
                paths.add(path.toUri().getPath());
                sizes.add(Long.valueOf(status.getLen()));
            }
        }
        Map found = new LinkedHashMap();
        found.put("paths", paths);
        found.put("sizes", sizes);
        found.put("columns", columns);
        return new ObjectMapper().writeValueAsString(found);
    }
}

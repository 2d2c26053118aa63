import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the names of a query mean in a session's catalogs, as JSON. Nothing of a table is loaded but
 * its entry in the catalog: resolving a name through Spark would read the whole Delta log.
 *
 * Compiled by Janino: no lambdas, no generics.
 */
public class TableNames {
    private final ObjectMapper mapper = new ObjectMapper();

    /**
     * What a name is, null for a name that no catalog knows: `provider` and `location` of a table;
     * `text`, `catalog` (its name and the namespace), `configs`, `schema` and `queried` of a view.
     * `name` is the whole name of what is not of the session alone.
     *
     * @param name JSON: the name's parts
     * @param home JSON: the catalog and namespace of names without one, null for the session's own
     * @param temporary whether the name may be that of a temporary view
     */
    public String find(SparkSession session, String name, String home, boolean temporary)
            throws Exception {
        List parts = (List) mapper.readValue(name, List.class);
        SessionCatalog known = session.sessionState().catalog();
        if (temporary) {
            scala.Option view = parts.size() == 1
                ? known.getRawTempView((String) parts.get(0))
                : parts.size() == 2 && known.isGlobalTempViewDB((String) parts.get(0))
                    ? known.getRawGlobalTempView((String) parts.get(1)) : scala.Option.empty();
            if (view.isDefined()) {
                CatalogTable meta = ((TemporaryViewRelation) view.get()).tableMeta();
                return mapper.writeValueAsString(view(meta));
            }
        }
        CatalogManager manager = session.sessionState().catalogManager();
        List whole = new ArrayList(parts);
        List homes = home == null ? null : (List) mapper.readValue(home, List.class);
        if (homes == null && parts.size() == 1 && session.sessionState().conf().getConfString(
                "spark.sql.path.enabled", "false").equals("true")) {
            return null; // the name may be found along a path of schemas
        }
        boolean qualified = parts.size() > 1 && manager.isCatalogRegistered((String) parts.get(0));
        if (!qualified) {
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
        if (found == null) return null;
        found.put("name", whole);
        return mapper.writeValueAsString(found);
    }

    private static Map entry(SessionCatalog known, CatalogManager manager, List name) {
        String catalog = (String) name.get(0);
        String table = (String) name.get(name.size() - 1);
        List namespace = name.subList(1, name.size() - 1);
        if (catalog.equalsIgnoreCase("spark_catalog") && namespace.size() == 1) {
            try {
                CatalogTable meta = known.getTableRawMetadata(new TableIdentifier(
                    table, new scala.Some(namespace.get(0))));
                return meta.tableType().name().equals("VIEW") ? view(meta)
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

    private static Map view(CatalogTable meta) {
        Map found = new LinkedHashMap();
        found.put("text", meta.viewText().isDefined() ? meta.viewText().get() : null);
        found.put("catalog", java(meta.viewCatalogAndNamespace()));
        found.put("configs", CollectionConverters.asJava(meta.viewSQLConfigs()));
        found.put("schema", meta.schema().json());
        found.put("queried", java(meta.viewQueryColumnNames()));
        // A body that names other objects of the session is left to Spark.
        found.put("plain", Boolean.valueOf(
            meta.viewReferredTempFunctionNames().isEmpty()
            && meta.viewReferredTempVariableNames().isEmpty()
            && !meta.properties().contains("view.storingAnalyzedPlan")));
        List views = new ArrayList();
        scala.collection.Iterator names = meta.viewReferredTempViewNames().iterator();
        while (names.hasNext()) views.add(java((scala.collection.Seq) names.next()));
        found.put("temporary_views", views);
        return found;
    }

    private static List java(scala.collection.Seq items) {
        return new ArrayList(CollectionConverters.asJava(items));
    }

    /** Which of these functions (JSON: names) are not Spark's own. */
    public String foreign(SparkSession session, String names) throws Exception {
        SessionCatalog known = session.sessionState().catalog();
        List found = new ArrayList();
        java.util.Iterator each = ((List) mapper.readValue(names, List.class)).iterator();
        while (each.hasNext()) {
            String name = (String) each.next();
            scala.Option info = known.lookupBuiltinOrTempFunction(name);
            if (info.isEmpty()) info = known.lookupBuiltinOrTempTableFunction(name);
            if (info.isEmpty() || !"built-in".equals(((ExpressionInfo) info.get()).getSource())) {
                found.add(name);
            }
        }
        return mapper.writeValueAsString(found);
    }

    /** The names of the settings that were made and can be changed. */
    public String settings(SparkSession session) throws Exception {
        List found = new ArrayList();
        SQLConf conf = session.sessionState().conf();
        java.util.Iterator all = CollectionConverters.asJava(conf.getAllConfs()).keySet().iterator();
        while (all.hasNext()) {
            String key = (String) all.next();
            if (conf.isModifiable(key)) found.add(key);
        }
        return mapper.writeValueAsString(found);
    }
}

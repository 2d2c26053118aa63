"""Compiles our small Java classes inside Spark's JVM, by Janino, which Spark ships."""

from __future__ import annotations

import contextlib
import importlib.resources
import threading
import uuid

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from variantlake.errors import UnsupportedFeature
from variantlake.spark.session.jvm import Java, gateway_of
from variantlake.spark.session.versions import java_source

OF_QUERIES = (
    "StaticFileIndex",
    "ScanViews",
    "TableNames",
    "AcceleratedReads",
    "PlanDump",
    "PathSubstitution",
    "PartialAggregates",
    "LakeRelation",
)
"""The classes that a query needs, in the order of their use."""

THREAD = "variantlake-compiles"

_jvms: list[_Jvm] = []
"""One for each JVM of this process (one, unless Spark was stopped)."""

_lock = threading.Lock()
"""Lets only one of several threads compile a class."""


class _Jvm:
    """Our classes in a JVM, each compiled once, and an instance of each."""

    def __init__(self, gateway: Java) -> None:
        self.gateway = gateway
        self.instances: dict[str, Java] = {}
        self.classes: dict[str, Java] = {}

    def class_of(self, spark: SparkSession, name: str, loader: Java) -> Java:
        """Return a class, compiled on first use."""
        with _lock:
            if name not in self.classes:
                self.classes[name] = _compile(spark, name, loader)
            return self.classes[name]


def compile_ahead(spark: SparkSession) -> None:
    """Start a thread that compiles the classes of queries in the background.

    Otherwise the first query would wait a third of a second. A class that does not compile is an
    error only on its first use.
    """
    jvm, loader = _jvm_of(spark), _loader_of(spark)

    def compile_all() -> None:
        with contextlib.suppress(Exception):  # Spark may be stopped meanwhile
            for name in OF_QUERIES:
                jvm.class_of(spark, name, loader)

    if not jvm.classes.keys() >= set(OF_QUERIES):
        threading.Thread(target=compile_all, name=THREAD, daemon=True).start()


def java_instance(spark: SparkSession, name: str) -> Java:
    """Return the instance, one per JVM, of the class in `<name>.java` next to this module.

    Raises UnsupportedFeature if the class does not compile, as on an untested version of Spark.
    """
    instances = _jvm_of(spark).instances
    if name not in instances:
        instances[name] = new_instance(spark, name)
    return instances[name]


def new_instance(spark: SparkSession, name: str) -> Java:
    """Return a new instance of a class, for one that keeps state. Raises as `java_instance`."""
    jvm = _jvm_of(spark)
    constructor = jvm.class_of(spark, name, _loader_of(spark)).getDeclaredConstructor(
        jvm.gateway.new_array(jvm.gateway.jvm.java.lang.Class, 0)
    )
    return constructor.newInstance(jvm.gateway.new_array(jvm.gateway.jvm.java.lang.Object, 0))


def _jvm_of(spark: SparkSession) -> _Jvm:
    gateway = gateway_of(spark)
    with _lock:
        found = next((jvm for jvm in _jvms if jvm.gateway is gateway), None)
        if found is None:
            found = _Jvm(gateway)
            _jvms.append(found)
        return found


def _loader_of(spark: SparkSession) -> Java:
    """Return the class loader of this thread, which knows the session's packages."""
    return gateway_of(spark).jvm.java.lang.Thread.currentThread().getContextClassLoader()


def source_of(name: str) -> str:
    """Return the Java source of a class."""
    return importlib.resources.files(__package__).joinpath(f"{name}.java").read_text("utf-8")


def _compile(spark: SparkSession, name: str, loader: Java) -> Java:
    # py4j caches methods by class name, and would fail on a second class of one name from another
    # class loader. So each compilation gets a unique name.
    unique = f"{name}{uuid.uuid4().hex}"
    compiler = gateway_of(spark).jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(17)  # the default refuses static methods of interfaces
    try:
        compiler.cook(java_source(spark, source_of(name)).replace(name, unique))
    except Py4JJavaError as error:
        raise UnsupportedFeature(
            "the internals of this Spark are not those we know:"
            f" {error.java_exception.getMessage()}",
            hint="use a version of Spark that docs/support.md lists, or read tables by "
            'spark.read.format("variantlake") after vl.spark.register(spark)',
            cli_hint="use a version of Spark that docs/support.md lists",
        ) from error
    return compiler.getClassLoader().loadClass(unique)

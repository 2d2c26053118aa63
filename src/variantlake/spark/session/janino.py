"""Small Java classes of ours inside Spark's JVM, compiled by Janino, which Spark ships."""

from __future__ import annotations

import importlib.resources
import uuid

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from variantlake.errors import UnsupportedFeature
from variantlake.spark.session.jvm import Java, gateway_of
from variantlake.spark.session.versions import java_source

_instances: list[tuple[Java, dict[str, Java]]] = []
"""The JVM gateways of this process (one, unless Spark was stopped), each with its instances."""


def java_instance(spark: SparkSession, name: str) -> Java:
    """The instance of the class in `<name>.java` beside this module, one for each JVM.

    Raises UnsupportedFeature if it does not compile: for a Spark that was not tried.
    """
    gateway = gateway_of(spark)
    known = next((found for owner, found in _instances if owner is gateway), None)
    if known is None:
        known = {}
        _instances.append((gateway, known))
    if name not in known:
        known[name] = new_instance(spark, name)
    return known[name]


def new_instance(spark: SparkSession, name: str) -> Java:
    """An instance of a class of its own, for what keeps something. Raises as `java_instance`."""
    return _compile(spark, name)


def source_of(name: str) -> str:
    """The text of a class."""
    return importlib.resources.files(__package__).joinpath(f"{name}.java").read_text("utf-8")


def _compile(spark: SparkSession, name: str) -> Java:
    # py4j remembers methods by class name, so that a second class of one name, from another class
    # loader, would fail: each compilation has a name of its own.
    unique = f"{name}{uuid.uuid4().hex}"
    gateway = gateway_of(spark)
    java = gateway.jvm.java.lang
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.Thread.currentThread().getContextClassLoader())
    compiler.setTargetVersion(17)  # by default it refuses static methods of interfaces
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
    loaded = compiler.getClassLoader().loadClass(unique)
    constructor = loaded.getDeclaredConstructor(gateway.new_array(java.Class, 0))
    return constructor.newInstance(gateway.new_array(java.Object, 0))

"""JVMs of the tests take Spark's classes from an archive, and start without one as well."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from tests import corpora
from tests.jvm import PLAIN, kept_classes, with_classes


def test_another_java_or_other_jars_have_an_archive_of_their_own(tmp_path: Path) -> None:
    spark, java = tmp_path / "spark", tmp_path / "java"
    (spark / "jars").mkdir(parents=True)
    java.mkdir()
    with pytest.raises(FileNotFoundError):
        kept_classes(java, spark, tmp_path)
    (java / "release").write_text('JAVA_VERSION="17.0.15"')
    first = kept_classes(java, spark, tmp_path)
    assert first == kept_classes(java, spark, tmp_path)
    (spark / "jars" / "a.jar").write_bytes(b"1")
    second = kept_classes(java, spark, tmp_path)
    (spark / "jars" / "a.jar").write_bytes(b"12")
    third = kept_classes(java, spark, tmp_path)
    (java / "release").write_text('JAVA_VERSION="21.0.1"')
    assert len({first, second, third, kept_classes(java, spark, tmp_path)}) == 4


@pytest.mark.spark
def test_a_jvm_takes_classes_from_the_archive_or_says_nothing(tmp_path: Path) -> None:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None or "JAVA_HOME" not in os.environ:
        corpora.missing("Java and PySpark")
    home = Path(spark.origin).parent
    kept, other = tmp_path / "kept.jsa", tmp_path / "other.jsa"
    other.write_bytes(b"of no JVM")

    def run(options: str, jars: str = "jars/*") -> str:
        java = [f"{os.environ['JAVA_HOME']}/bin/java", *options.split(), "-cp", str(home / jars)]
        launcher = "org.apache.spark.launcher.Main"
        said = subprocess.run(
            [*java, launcher, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"],
            env={"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return said.stdout

    right = run(PLAIN)
    run(f"{PLAIN} -XX:ArchiveClassesAtExit={kept}")
    found = run(f"{with_classes(kept)} -Xlog:class+load")
    assert "launcher.Main source: shared objects file (top)" in found
    assert run(with_classes(kept)) == right
    assert run(with_classes(tmp_path / "none.jsa")) == right
    assert run(with_classes(other)) == right
    (launcher,) = home.glob("jars/spark-launcher_*.jar")
    assert run(with_classes(kept), f"jars/{launcher.name}") == run(PLAIN, f"jars/{launcher.name}")

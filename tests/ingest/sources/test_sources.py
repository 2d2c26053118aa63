"""Files, globs and directories of newline-delimited JSON, and how they are split."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from variantlake.batches import packed
from variantlake.errors import InvalidValue, MissingSource, StoreFailed, UnsupportedFeature
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import (
    Source,
    Split,
    expand,
    ndjson,
    split_sources,
)

LINE = b'{"a": 1}\n'


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LINE)


def names(sources: tuple[Source, ...], folder: Path) -> list[str]:
    return [str(Path(source.path).relative_to(folder)) for source in sources]


def test_a_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, "_odd [1].txt")
    assert expand(tmp_path / "_odd [1].txt") == (Source(str(tmp_path / "_odd [1].txt"), len(LINE)),)


def test_a_glob_is_sorted_and_leaves_hidden_names_out(tmp_path: Path) -> None:
    write(tmp_path, "b.json", "a.json", "_c.json", ".d.json", "e.txt", "sub/f.json")
    assert names(expand(f"{tmp_path}/*.json"), tmp_path) == ["a.json", "b.json"]
    assert names(expand(f"{tmp_path}/_*"), tmp_path) == ["_c.json"]
    assert names(expand(f"{tmp_path}/**/*.json"), tmp_path) == ["a.json", "b.json", "sub/f.json"]


def test_a_glob_enters_no_hidden_folder_that_it_does_not_name(tmp_path: Path) -> None:
    write(tmp_path, "a.json", "_delta_log/0.json", "sub/_temporary/b.json", "sub/_x/c.json")
    assert names(expand(f"{tmp_path}/**/*.json"), tmp_path) == ["a.json"]
    with pytest.raises(MissingSource):
        expand(f"{tmp_path}/*/*/*.json")
    assert names(expand(f"{tmp_path}/*/_x/*.json"), tmp_path) == ["sub/_x/c.json"]
    assert names(expand(f"{tmp_path}/_*/*.json"), tmp_path) == ["_delta_log/0.json"]


def test_a_glob_follows_links_to_folders_that_it_names(tmp_path: Path) -> None:
    write(tmp_path, "real/a.json")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "real")
    assert names(expand(f"{tmp_path}/in/*/*.json"), tmp_path) == ["in/link/a.json"]
    with pytest.raises(MissingSource):
        expand(tmp_path / "in")


@pytest.mark.parametrize("source", ["", "**/*.json", "*/*.json"])
def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    write(tmp_path, "a.json", "closed/b.json", "open/c.json")
    scandir = os.scandir

    def refused(path: str | bytes) -> Any:
        if os.fsdecode(path).rstrip("/").endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(StoreFailed, match="cannot be listed") as caught:
        expand(tmp_path / source)
    assert caught.value.file.rstrip("/") == str(tmp_path / "closed")
    assert "owner and the mode" in caught.value.hint


def test_a_directory_is_read_with_its_subdirectories(tmp_path: Path) -> None:
    write(tmp_path, "b.ndjson", "a.jsonl.gz", "README.md", "_x/c.json", "sub/d.json.zst", "_s.json")
    assert names(expand(tmp_path), tmp_path) == ["a.jsonl.gz", "b.ndjson", "sub/d.json.zst"]


def test_a_directory_s_files_are_told_by_their_ends_in_letters_of_any_case(tmp_path: Path) -> None:
    write(tmp_path, "a.JSON", "b.Ndjson.GZ", "c.TXT")
    assert names(expand(tmp_path), tmp_path) == ["a.JSON", "b.Ndjson.GZ"]


def test_a_glob_that_matches_directories_reads_them(tmp_path: Path) -> None:
    write(tmp_path, "day=1/a.json", "day=2/b.json")
    (tmp_path / "day=3").mkdir()
    assert names(expand(f"{tmp_path}/day=*"), tmp_path) == ["day=1/a.json", "day=2/b.json"]


def test_sources_keep_their_order_and_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.json", "b.json")
    given: list[str | Path] = [
        tmp_path / "b.json",
        f"{tmp_path}/*.json",
        f"{tmp_path}/../{tmp_path.name}/a.json",
    ]
    assert names(expand(given), tmp_path) == ["b.json", "a.json"]


def test_a_file_uri_is_a_path(tmp_path: Path) -> None:
    write(tmp_path, "a b.json")
    assert names(expand((tmp_path / "a b.json").as_uri()), tmp_path) == ["a b.json"]


@pytest.mark.parametrize(
    "missing", ["nowhere.json", "*.json", "empty", "README.md/x", "**/*.gz", "empty*"]
)
def test_a_missing_source_is_named(tmp_path: Path, missing: str) -> None:
    write(tmp_path, "README.md")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingSource) as caught:
        ndjson(tmp_path / missing)
    assert caught.value.file == str(tmp_path / missing)


def test_no_source_at_all_is_refused() -> None:
    with pytest.raises(MissingSource, match="no source"):
        expand([])


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_a_missing_source(name: str) -> None:
    with pytest.raises(MissingSource, match="cannot be looked up") as caught:
        expand(name)
    assert (caught.value.file, bool(caught.value.hint)) == (name, True)


def test_an_empty_file_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a.json")
    (tmp_path / "b.json").touch()
    assert [source.size for source in expand(tmp_path)][1:] == [0]


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MissingSource, match="regular"):
        expand(tmp_path / "pipe")


def test_other_schemes_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeature, match="ftp"):
        expand("ftp://host/a.json")


@pytest.mark.parametrize(
    ("packed", "compression"),
    [
        (LINE, Compression.NONE),
        (gzip.compress(LINE), Compression.GZIP),
        (zstandard.compress(LINE), Compression.ZSTD),
        (bz2.compress(LINE), Compression.BZ2),
    ],
    ids=lambda value: value.name if isinstance(value, Compression) else "",
)
def test_compression_is_told_by_the_bytes(
    tmp_path: Path, packed: bytes, compression: Compression
) -> None:
    (tmp_path / "any.name").write_bytes(packed)
    assert expand(tmp_path / "any.name")[0].compression is compression


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (lzma.compress(LINE), "xz data"),
        (lzma.compress(LINE, lzma.FORMAT_ALONE), "lzma data"),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "a zip archive"),
        (b"\xff\x06\0\0sNaPpY", "snappy data"),
        *((zlib.compress(LINE, level), "zlib data") for level in (0, 1, 6, 9)),
        (b"\x04\x22\x4d\x18d@", "lz4 data"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"Obj\x01\x04", "an Avro file"),
        *((LINE.decode().encode(name), "text in UTF-16") for name in ("utf-16", "utf-16-le")),
        ('\ufeff{"a": 1}'.encode("utf-16-be"), "text in UTF-16, not"),
        ('{"a": 1}'.encode("utf-16-be"), "without a byte order mark"),
        ('{"a": 1}'.encode("utf-32"), "text in UTF-"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_json_text_is_named(tmp_path: Path, head: bytes, what: str) -> None:
    (tmp_path / "a.json").write_bytes(head)
    with pytest.raises(UnsupportedFeature, match=what) as caught:
        expand(tmp_path)
    assert caught.value.file == str(tmp_path / "a.json")
    assert caught.value.hint


@pytest.mark.parametrize("text", [b"x^2 + y", b"x", b"P", b"\xef\xbb\xbf{}", b"", b"0", b"\0"])
def test_other_text_is_read(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a.json").write_bytes(text)
    assert expand(tmp_path)[0].compression is Compression.NONE


def test_alternatives_in_braces_are_read(tmp_path: Path) -> None:
    write(tmp_path, "a/1.json", "b/1.json", "c/1.json", "a/2.json", "_h/1.json", "x{1}.json", "e,f")

    def meant(pattern: str) -> list[str]:
        return names(expand(tmp_path / pattern), tmp_path)

    assert meant("{a,b}/1.json") == ["a/1.json", "b/1.json"]
    assert meant("{a/2,c/*}.json") == ["a/2.json", "c/1.json"]
    assert meant("{a,{b,_h}}/[1]*") == ["_h/1.json", "a/1.json", "b/1.json"]
    assert meant("{a,**}/2.json") == ["a/2.json"]
    assert meant("?{1}.json") == meant("x{1}.json") == ["x{1}.json"]
    assert meant("{a,}/2.json") == ["a/2.json"]
    with pytest.raises(MissingSource, match="no file matches"):
        expand(tmp_path / "{y,z}/*.json")
    with pytest.raises(InvalidValue, match="1,000"):
        expand(str(tmp_path / ("{a,b}" * 12)))


def test_splits_cover_a_plain_source_and_leave_a_compressed_one_whole() -> None:
    plain, packed = Source("a", 1000), Source("b", 1000, Compression.GZIP)
    assert split_sources([plain, packed], 300) == (
        Split(plain, 0, 333),
        Split(plain, 333, 666),
        Split(plain, 666, 1000),
        Split(packed, 0, 1000),
    )


def test_groups_keep_the_order_and_stay_within_the_target() -> None:
    splits = [Split(Source(str(i), size), 0, size) for i, size in enumerate([5, 5, 20, 1, 4, 5])]
    groups = packed(splits, lambda split: split.size, 10)
    assert [[split.size for split in group] for group in groups] == [[5, 5], [20], [1, 4, 5]]

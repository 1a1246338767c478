"""A fingerprint of rows themselves, whatever batches they come in and whatever library writes them."""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.sources.tables.schemas import schema_to_text

_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


class RowsHash:
    """Hashes the rows of batches of one schema: each column's values, lengths and nulls as they follow each other.

    What lies in memory at nulls, how rows are cut into batches and how a file stores them makes no difference.
    """

    def __init__(self, schema: pa.Schema) -> None:
        """Begins with no rows.

        Args:
            schema: A plain schema.
        """
        self._schema = schema
        self._hashes: dict[str, hashlib._Hash] = {}

    def update(self, batch: pa.RecordBatch) -> None:
        """Adds a batch's rows."""
        for index, array in enumerate(batch.columns):
            self._add(str(index), array)

    def hexdigest(self) -> str:
        """Returns the hash of all rows so far."""
        parts = "".join(f"\n{path} {digest.hexdigest()}" for path, digest in sorted(self._hashes.items()))
        return hashlib.sha256((schema_to_text(self._schema) + parts).encode()).hexdigest()

    def _feed(self, path: str, array: pa.Array) -> None:
        """Hashes an array of fixed-size values without nulls."""
        digest = self._hashes.setdefault(path, hashlib.sha256())
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        buffer = array.buffers()[1]
        if buffer is not None and len(array):
            width = array.type.byte_width
            digest.update(memoryview(buffer)[array.offset * width : (array.offset + len(array)) * width])

    def _add(self, path: str, array: pa.Array) -> None:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        self._feed(f"{path}.valid", array.is_valid())
        array = array.drop_null()
        type_ = array.type
        if pa.types.is_struct(type_):
            for index, child in enumerate(array.flatten()):
                self._add(f"{path}.{index}", child)
        elif pa.types.is_map(type_):
            self._add(f"{path}.list", array.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))))
        elif pa.types.is_nested(type_):
            self._feed(f"{path}.length", pc.list_value_length(array).cast(pa.int64()))
            self._add(f"{path}.items", array.flatten())
        elif type_ in _BYTES:
            array = array.cast(pa.large_binary())
            self._feed(f"{path}.length", pc.binary_length(array))
            offsets = pa.Array.from_buffers(pa.int64(), len(array) + 1, [None, array.buffers()[1]], offset=array.offset)
            digest = self._hashes.setdefault(f"{path}.data", hashlib.sha256())
            if len(array) and (data := array.buffers()[2]) is not None:
                digest.update(memoryview(data)[offsets[0].as_py() : offsets[len(array)].as_py()])
        elif not pa.types.is_null(type_):
            self._feed(path, array)

"""Initial values of added columns, in row images that are older than the column."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import canonical


def with_initials(
    images: pa.ChunkedArray, schema_ids: pa.ChunkedArray, initials: Mapping[str, Mapping[str, str]]
) -> pa.ChunkedArray:
    """``images``: whole ones. ``initials``: by schema id, the columns that images of that schema lack, as JSON."""
    for schema_id, values in initials.items():
        older = pc.equal(schema_ids, schema_id)
        if values and pc.any(older).as_py():
            tail = "".join(f",{canonical(name)}:{value}" for name, value in values.items()) + "}"
            longer = pc.binary_join_element_wise(pc.utf8_slice_codeunits(images, 0, -1), tail, "")
            images = pc.if_else(older, longer, images)
    return images

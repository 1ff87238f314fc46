"""What the page Models shows of stored scans."""

import torch

from headwise import mha, scan
from headwise.attention import HeadGeometry
from headwise.web.models import heads, scanned


def test_colours_end_where_those_of_the_report_do(tmp_path):
    """They ran from the least to the largest rank, so that nearly equal heads looked opposite."""
    place = str(tmp_path / "results.db")
    tokens = torch.randn(1, 16, 12, generator=torch.Generator().manual_seed(0))
    found = scan(mha(HeadGeometry.standard(12, heads=3)), tokens, store=place)
    (one,) = scanned(place)
    columns = heads(place, one["key"])["columns"]
    assert {each["name"] for each in columns} > {"coarse_rank", "query_key_rank", "logit_scale"}
    for column in columns:
        assert column["top"] == found.scale(column["name"]).top

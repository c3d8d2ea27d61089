"""PostgreSQL servers, read in place. Here is their dialect, which no driver is needed for."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.postgres import Postgres

from tagframe.engines.base import Dialect
from tagframe.engines.sqlite.statement import relation


class FaithfulPostgres(Postgres):
    """PostgreSQL's dialect, in which a function with plain arguments stays a name and its arguments."""

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
        """Knows only functions that have a grammar of their own (EXTRACT, SUBSTRING … FROM, …)."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        # EXTRACT gives another type than date_part.
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Postgres.Parser.FUNCTION_PARSERS.items() if name != "DATE_PART"
        }


# Functions that compute from their arguments alone. What
# reads files, settings or system catalogs, runs SQL from a text, waits, writes or speaks to other sessions is not here.
_FUNCTIONS = frozenset(
    "abs acos age array_agg array_append array_cat array_length array_position array_remove array_to_string ascii asin "
    "atan atan2 avg bit_and bit_length bit_or bool_and bool_or btrim cardinality cast cbrt ceil ceiling char_length "
    "character_length chr coalesce concat concat_ws corr cos cot count covar_pop covar_samp cube cume_dist date "
    "date_bin date_part date_trunc degrees dense_rank div every exp extract first_value floor format gcd greatest "
    "grouping initcap isfinite json_agg json_array_elements json_array_elements_text json_array_length "
    "json_build_array json_build_object json_each json_each_text json_extract_path json_extract_path_text "
    "json_object_agg json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length "
    "jsonb_build_array jsonb_build_object jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_typeof "
    "justify_days justify_hours justify_interval lag last_value lcm lead least left length ln log log10 lower lpad "
    "ltrim make_date make_interval make_time make_timestamp md5 max min mod mode now nth_value ntile nullif "
    "octet_length overlay percent_rank percentile_cont percentile_disc pi position pow power radians rank "
    "regexp_count regexp_instr regexp_like regexp_match regexp_replace regexp_substr regr_intercept regr_r2 "
    "regr_slope repeat replace reverse right rollup round row_number row_to_json rpad rtrim sign sin split_part sqrt "
    "starts_with stddev stddev_pop stddev_samp string_agg string_to_array strpos substr substring sum tan to_char "
    "to_date to_json to_jsonb to_number to_timestamp translate trim trunc unnest upper var_pop var_samp variance "
    "width_bucket quote_nullable".split()
)

POSTGRES = Dialect(
    "postgres",
    "PostgreSQL",
    FaithfulPostgres,
    relation,
    _FUNCTIONS | {"all"},
    str.lower,
    "all if recursive",
    rules="What is compared has to be of one type: cast, as in name = id::text.",
)
"""PostgreSQL's SQL."""

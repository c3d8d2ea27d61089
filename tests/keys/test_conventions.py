"""Habits of whole schemas, from names alone."""

from __future__ import annotations

import pytest

from tagframe.corpus.schema_only import schema_profiles
from tagframe.keys import infer_key_pairs

Schema = dict[str, list[str]]


def keys(schema: Schema) -> set[str]:
    """The inferred keys as ``table.column → table.column``."""
    found = infer_key_pairs(schema_profiles(schema), declared=False)
    return {f"{key.left} → {key.right}".replace("schema.", "") for key in found}


WITHOUT_KEY_WORDS: Schema = {
    "plant": ["id", "gid", "name", "type", "region", "begin_region"],
    "plant_type": ["id", "name", "parent"],
    "plant_tag": ["plant", "tag", "count"],
    "plant_alias": ["id", "plant", "name", "type"],
    "plant_alias_type": ["id", "name"],
    "tag": ["id", "name"],
    "region": ["id", "gid", "name", "type"],
    "region_type": ["id", "name", "parent"],
    "edit": ["id", "status"],
    "edit_plant": ["edit", "plant"],
    "bond": ["id", "bond_type"],
    "bond_type": ["id", "parent", "name"],
    "l_plant_region": ["id", "bond", "entity0", "entity1"],
}


def test_references_called_as_their_tables() -> None:
    assert keys(WITHOUT_KEY_WORDS) == {
        "plant.type → plant_type.id",
        "plant.region → region.id",
        "plant.begin_region → region.id",
        "plant_type.parent → plant_type.id",
        "plant_tag.plant → plant.id",
        "plant_tag.tag → tag.id",
        "plant_alias.plant → plant.id",
        "plant_alias.type → plant_alias_type.id",
        "region.type → region_type.id",
        "region_type.parent → region_type.id",
        "edit_plant.edit → edit.id",
        "edit_plant.plant → plant.id",
        "bond.bond_type → bond_type.id",
        "bond_type.parent → bond_type.id",
        "l_plant_region.bond → bond.id",
        "l_plant_region.entity0 → plant.id",
        "l_plant_region.entity1 → region.id",
    }


def test_prefixes_and_abbreviations_of_a_warehouse() -> None:
    found = keys(
        {
            "client_address": ["ca_address_sk", "ca_city", "ca_zip"],
            "client_profile": ["cp_prof_sk", "cp_age"],
            "firm_profile": ["fp_prof_sk", "fp_size"],
            "sales": ["s_item_sk", "s_bill_addr_sk", "s_ship_addr_sk", "s_bill_cprof_sk", "s_fprof_sk", "s_zip"],
            "returns": ["r_item_sk", "r_addr_sk", "r_cprof_sk", "r_amount"],
            "item": ["i_item_sk", "i_name", "i_price"],
        }
    )
    assert found == {
        "sales.s_item_sk → item.i_item_sk",
        "sales.s_bill_addr_sk → client_address.ca_address_sk",
        "sales.s_ship_addr_sk → client_address.ca_address_sk",
        "sales.s_bill_cprof_sk → client_profile.cp_prof_sk",
        "sales.s_fprof_sk → firm_profile.fp_prof_sk",
        "returns.r_item_sk → item.i_item_sk",
        "returns.r_addr_sk → client_address.ca_address_sk",
        "returns.r_cprof_sk → client_profile.cp_prof_sk",
    }


OFFICE: Schema = {
    "Entity": ["EntityID", "Guid"],
    "Clerk": ["EntityID", "Bonus"],
    "People": ["PersonID", "FullName"],
    "Address": ["AddressID", "City", "PostalCode"],
    "SaleHeader": ["SaleID", "ClerkID", "BillToAddressID", "ShipPostalCode"],
    "SaleDetail": ["SaleID", "SaleDetailID", "Price"],
}


@pytest.mark.parametrize("lower", [False, True], ids=["camel case", "lower case without separators"])
def test_roles_before_and_behind(lower: bool) -> None:
    schema = {name.lower(): [c.lower() for c in columns] for name, columns in OFFICE.items()} if lower else OFFICE
    expected = {
        "Clerk.EntityID → Entity.EntityID",
        "SaleHeader.ClerkID → Clerk.EntityID",
        "SaleHeader.BillToAddressID → Address.AddressID",
        "SaleDetail.SaleID → SaleHeader.SaleID",
    }
    assert keys(schema) == ({key.lower() for key in expected} if lower else expected)


def test_a_shared_attribute_is_no_key() -> None:
    attributes = ["city", "state", "zip", "hours", "status"]
    found = keys({name: [f"{name}_id", *attributes] for name in ("store", "warehouse", "office", "branch")})
    assert found == set()


def test_key_words_are_not_added_where_the_schema_writes_them() -> None:
    found = keys(
        {
            "artist": ["artist_id", "name"],
            "album": ["album_id", "artist_id", "title", "genre"],
            "track": ["track_id", "album_id", "title", "genre"],
            "genre": ["genre_id", "label"],
            "sale": ["sale_id", "track_id", "genre"],
        }
    )
    assert {"album.artist_id → artist.artist_id", "track.album_id → album.album_id"} <= found
    assert "sale.track_id → track.track_id" in found


@pytest.mark.parametrize(
    ("schema", "expected", "unexpected"),
    [
        pytest.param(
            {
                "farm_user": ["id", "login"],
                "farm_plot": ["id", "name", "owner_grower_id"],
                "farm_grower": ["id", "name"],
                "farm_sale": ["id", "grower_invoice_id", "kind_id"],
                "farm_kind": ["id", "name"],
                "tool_kind": ["id", "name"],
            },
            {
                "farm_plot.owner_grower_id → farm_grower.id",
                "farm_sale.grower_invoice_id → farm_grower.id",
                "farm_sale.kind_id → farm_kind.id",
            },
            {"farm_sale.kind_id → tool_kind.id"},
            id="one-name-before-all-tables",
        ),
        pytest.param(
            {
                "farm_record": ["record_id", "name"],
                "plot_record": ["record_id", "farm_id"],
                "seed_record": ["record_id", "plot_id"],
                "sale": ["record_id", "seed_id"],
            },
            set(),
            {"plot_record.record_id → farm_record.record_id", "sale.record_id → seed_record.record_id"},
            id="every-table-numbers-its-rows-by-one-name",
        ),
        pytest.param(
            {
                "apartments": ["apt_id", "floor"],
                "apartment_extras": ["apt_id", "extra"],
                "apartment_lets": ["let_id", "apt_id"],
                "view_state": ["apt_id", "day"],
            },
            {"apartment_lets.apt_id → apartments.apt_id", "view_state.apt_id → apartments.apt_id"},
            set(),
            id="an-abbreviated-key-that-many-refer-to-is-no-row-number",
        ),
        pytest.param(
            {"Mitarbeiter": ["MitarbeiterNr", "Name", "VorgesetzterNr"], "empleados": ["id_empleado", "id_jefe"]},
            {
                "Mitarbeiter.VorgesetzterNr → Mitarbeiter.MitarbeiterNr",
                "empleados.id_jefe → empleados.id_empleado",
            },
            set(),
            id="superiors-in-german-and-spanish",
        ),
    ],
)
def test_habits(schema: Schema, expected: set[str], unexpected: set[str]) -> None:
    found = keys(schema)
    assert expected <= found
    assert not unexpected & found

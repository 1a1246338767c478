"""`translation:` of a dataset's YAML: how its assets appear in Dagster's catalog, by Dagster's own hook."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from dagster.components.resolved.core_models import AssetAttributesModel
from dagster.components.utils.translation import TranslatorResolvingInfo


def translation(
    said: Mapping[str, Any], context: dg.ResolutionContext, raw: dg.AssetKey
) -> Callable[[dg.AssetSpec], dg.AssetSpec]:
    """Returns what makes of each asset's spec the one that appears.

    Args:
        said: What stands in the YAML, with templates, in which `spec` is the asset's.
        context: In which these are filled in.
        raw: Key of the asset that may come after others: only it has no inputs of its own.
    """
    info = TranslatorResolvingInfo(AssetAttributesModel(**said), context, "translation")

    def translate(spec: dg.AssetSpec) -> dg.AssetSpec:
        made = info.get_asset_spec(spec, {"spec": spec})
        return made if spec.key == raw else made.replace_attributes(deps=spec.deps)

    return translate

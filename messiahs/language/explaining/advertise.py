"""Explain `advertise`: the values to which attributes of this machine are set."""

from collections.abc import Iterator

from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.descriptions import SDV
from messiahs.language.explaining.situation import Situation
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.disclosing import Setting
from messiahs.language.runtime.readings import Facts
from messiahs.language.runtime.rule_explanation import ExplainedBlock, ExplainedRule, explain_rule


def advertise_in(policy: CompiledPolicy, situation: Situation, /) -> Iterator[ExplainedBlock]:
    """Yield every attribute that is set."""
    for setting in policy.disclosure.advertising.settings:
        yield explain_setting(policy, setting, situation.here, situation.query.now)


def explain_setting(policy: CompiledPolicy, setting: Setting, measured: SDV, now: CalendarTime, /) -> ExplainedBlock:
    """Evaluate every condition under which an attribute of this machine is set."""
    advertised = policy.disclosure.describe_here(measured, now).description()
    value = value_text(advertised[setting.name], setting.unit) if setting.name in advertised else "not said"
    rules = tuple(_choices(setting, policy.disclosure.facts_here(measured, now)))
    return ExplainedBlock(head=f"set ${setting.name}", start=setting.start, verdict=value, rules=rules)


def _choices(setting: Setting, facts: Facts) -> Iterator[ExplainedRule]:
    for _, condition in setting.choices:
        yield explain_rule(condition, f"when {condition.predicate}", facts)

"""Explanations of policies as text and as JSON documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from messiahs.cli.output import print_text
from messiahs.client.connection import Document
from messiahs.language.explaining.parts import UsedPart, parts_of
from messiahs.language.explaining.ranks import ExplainedKey, ExplainedOrder
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.condition_explanation import PAPERS_RULE, JudgedTerm, values_text
from messiahs.language.runtime.rule_explanation import ExplainedBlock, ExplainedRule

_SHOWN_CANDIDATES: Final = 10


def text_of(policy: CompiledPolicy) -> str:
    """Return the text of the file that a policy was compiled from; positions in the policy refer to it."""
    assert policy.source is not None, "compiled from a file"
    return policy.source.text


def policy_document(
    file: Path, policy: CompiledPolicy, blocks: tuple[ExplainedBlock, ...], orders: tuple[ExplainedOrder, ...], /
) -> Document:
    """Describe every part, block, rule and comparison, and every order with its keys; lines count from 1."""
    text = text_of(policy)
    return {
        "file": str(file),
        "parts": [_part_document(part) for part in parts_of(policy)],
        "blocks": [block_document(block, text) for block in blocks],
        "orders": [_order_document(order, text) for order in orders],
    }


def show_blocks(file: Path, text: str, blocks: tuple[ExplainedBlock, ...], /) -> None:
    """Print every block with its rules and their comparisons; `<- against` marks those that make the rule false."""
    for block in blocks:
        for line in block_lines(block, file, text=text):
            print_text(line)
    if not blocks:
        print_text(f"{file}: no rule applies")


def show_parts(file: Path, policy: CompiledPolicy, /) -> None:
    """Print which parts decide: those that the file names one by one, and the defaults together."""
    parts = parts_of(policy)
    for part in parts:
        if not part.is_default:
            origin = (
                f", from {part.declared.distribution} {part.declared.version}" if part.declared.distribution else ""
            )
            print_text(f"{file}: {part.kind} by {part.text}: {part.declared.meaning}{origin}")
    default = ", ".join(f"{part.kind} by {part.text}" for part in parts if part.is_default)
    if default:
        print_text(f"{file}: by default: {default}")


def _part_document(part: UsedPart) -> Document:
    return {
        "block": part.kind.value,
        "part": part.text,
        "meaning": part.declared.meaning,
        "default": part.is_default,
        "distribution": part.declared.distribution,
        "version": part.declared.version,
    }


def show_orders(file: Path, text: str, orders: tuple[ExplainedOrder, ...], /) -> None:
    """Print every order with its keys and their values, and the first ranked neighbors."""
    for order in orders:
        print_text(f"{file}:{line_of(text, order.written.start)}: {order.written.head}{_outcome(order)}")
        for (written, start), key in zip(order.written.keys, order.keys, strict=True):
            print_text(f"  {line_of(text, start):4} {written}: {key.text}")
            for line in [] if key.rule is None else _comparison_lines(key.rule):
                print_text(f"  {line}")
        for place, ranked in enumerate((order.ranked or ())[:_SHOWN_CANDIDATES], start=1):
            values = "; ".join(key.text for key in ranked.keys)
            print_text(f"  {place:4}. {ranked.system} ({ranked.relation}): {values}")
        if len(order.ranked or ()) > _SHOWN_CANDIDATES:
            print_text(f"{'':8}and {len(order.ranked or ()) - _SHOWN_CANDIDATES} more, which --json lists")


def _outcome(order: ExplainedOrder) -> str:
    if order.ranked is None:
        return "" if order.written.head == "rank tasks" else ": no neighbors are known without --views or --pool"
    unable = f"; could not hold the task: {', '.join(order.unable)}" if order.unable else ""
    return f": {len(order.ranked)} could be asked{unable}"


def block_lines(block: ExplainedBlock, file: Path, *, text: str) -> Iterator[str]:
    """Yield a block, its rules and their comparisons, line by line; `text` is the text of the policy file."""
    yield f"{file}:{line_of(text, block.start)}: {block.head}: {block.verdict}"
    for rule in block.rules:
        yield from (f"  {line}" for line in _rule_lines(rule, text))


def _rule_lines(rule: ExplainedRule, text: str) -> Iterator[str]:
    yield f"{line_of(text, rule.start):4} {'true ' if rule.is_true else 'false'} {rule.text}"
    if rule.note:
        yield f"{'':11}{rule.note}"
    yield from _comparison_lines(rule)


def _comparison_lines(rule: ExplainedRule) -> Iterator[str]:
    if rule.explanation is None:
        return
    terms = rule.explanation.terms
    against = rule.explanation.against
    width = max((len(_named(term)) for term in terms), default=0)
    for term in terms:
        mark = "  <- against" if term in against else ""
        yield f"{'':11}{term.finding.value:8} {_named(term):{width}}  {values_text(term)}{mark}".rstrip()
    if rule.explanation.undefined:
        names = dict.fromkeys(name for term in rule.explanation.undefined for name in term.lacking)
        yield f"{'':11}no value of the right type: {', '.join(names)}; {PAPERS_RULE}"


def line_of(text: str, start: int) -> int:
    """Return the line, from 1, of a position in a text."""
    return text.count("\n", 0, start) + 1


def _named(term: JudgedTerm) -> str:
    return f"{term.let}: {term.term.text}" if term.let else term.term.text


def block_document(block: ExplainedBlock, text: str) -> Document:
    """Describe one block with its rules; `text` is the text of the policy file."""
    return {
        "block": block.head,
        "line": line_of(text, block.start),
        "verdict": block.verdict,
        "rules": [_rule_document(rule, text) for rule in block.rules],
    }


def _rule_document(rule: ExplainedRule, text: str) -> Document:
    return {
        "rule": rule.text,
        "line": line_of(text, rule.start),
        "result": rule.is_true,
        "note": rule.note,
        "comparisons": _comparisons(rule),
    }


def _order_document(order: ExplainedOrder, text: str) -> Document:
    keys = zip(order.written.keys, order.keys, strict=True)
    ranked = [
        {"system": each.system, "relation": each.relation.value, "keys": [_key_document(key) for key in each.keys]}
        for each in order.ranked or ()
    ]
    return {
        "block": order.written.head,
        "line": line_of(text, order.written.start),
        "keys": [
            {
                "key": written,
                "line": line_of(text, start),
                **_key_document(key),
                "comparisons": [] if key.rule is None else _comparisons(key.rule),
            }
            for (written, start), key in keys
        ],
        "ranked": None if order.ranked is None else ranked,
        "unable": list(order.unable),
    }


def _key_document(key: ExplainedKey) -> Document:
    return {"text": key.text, "value": key.value, "unset": list(key.unset)}


def _comparisons(rule: ExplainedRule) -> list[Document]:
    if rule.explanation is None:
        return []
    against = rule.explanation.against
    return [{**_term_document(term), "against": term in against} for term in rule.explanation.terms]


def _term_document(judged: JudgedTerm) -> Document:
    return {
        "text": judged.term.text,
        "let": judged.let,
        "finding": judged.finding.value,
        "values": {str(said.reading): said.value for said in judged.said}
        | {str(computed.amount): computed.value for computed in judged.computed},
    }

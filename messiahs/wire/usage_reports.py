"""Reports on what claims have used, on the wire."""

from messiahs.core.interface.ledger_messages import ClaimUsage, UsageReport, UsageReportAck
from messiahs.core.interface.limits import USAGES
from messiahs.wire.ids import read_claim, write_claim
from messiahs.wire.limits import at_most, counter
from messiahs.wire.v1 import control_pb2


def write_usage_report(wire: control_pb2.UsageReport, report: UsageReport) -> None:
    """Fill in a report, which may be empty."""
    wire.SetInParent()
    for usage in report.usages:
        entry = wire.usages.add(processor_ns=usage.processor_ns, used_ns=usage.used_ns, is_final=usage.is_final)
        write_claim(entry.claim, usage.claim)


def read_usage_report(wire: control_pb2.UsageReport) -> UsageReport:
    """Check a report."""
    at_most(len(wire.usages), USAGES, what="claims")
    return UsageReport(
        usages=tuple(
            ClaimUsage(
                claim=read_claim(entry.claim),
                processor_ns=counter(entry.processor_ns),
                used_ns=counter(entry.used_ns),
                is_final=entry.is_final,
            )
            for entry in wire.usages
        )
    )


def write_usage_report_ack(wire: control_pb2.UsageReportAck, ack: UsageReportAck) -> None:
    """Fill in an acknowledgment, which may be empty."""
    wire.SetInParent()
    for claim in ack.claims:
        write_claim(wire.claims.add(), claim)


def read_usage_report_ack(wire: control_pb2.UsageReportAck) -> UsageReportAck:
    """Check an acknowledgment."""
    at_most(len(wire.claims), USAGES, what="claims")
    return UsageReportAck(claims=tuple(map(read_claim, wire.claims)))

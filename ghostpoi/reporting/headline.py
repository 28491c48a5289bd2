"""The verdict in one line, the same on the page, in the card and on the terminal."""

from ghostpoi.reporting.audit_view import AuditView
from ghostpoi.reporting.labels import VERDICTS, victim_label


def headline(audit: AuditView) -> str:
    """Return the line. The worst comes first; only an audit with the whole default set of adversaries says "holds"."""
    if audit.no_verdict:
        return f"No verdict: {audit.no_verdict}"
    names = list(audit.adversaries)
    missing = f"not run: {', '.join(audit.not_run)}"
    for verdict, text in (("fails", "Fails against"), ("partly", "Partly holds against")):
        if found := [victim_label(name) for name in names if audit.verdict(name) == verdict]:
            if audit.not_run and verdict == "partly":
                break
            whom = " and ".join(found) if len(found) < 3 else f"{len(found)} of {len(names)} adversaries"
            return f"{text} {whom}" + (f" (partial audit; {missing})" if audit.not_run else "")
    if audit.not_run:
        return (
            f"Partial audit, no verdict: {len(names)} of {len(names) + len(audit.not_run)} adversaries ran; {missing}"
        )
    tested = {1: "the one adversary", 2: "both adversaries"}.get(len(names), f"all {len(names)} adversaries")
    return f"Holds against {tested} tested"


def tone(audit: AuditView) -> str:
    """Return the key of VERDICTS that the line stands for; empty if it is no verdict."""
    if audit.no_verdict:
        return ""
    worst = min(map(audit.verdict, audit.adversaries), key=list(VERDICTS).index)
    return "" if audit.not_run and worst != "fails" else worst

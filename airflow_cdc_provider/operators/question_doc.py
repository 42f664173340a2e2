"""A question as Markdown, with every text of the source as a code span."""

from __future__ import annotations

from airflow_cdc_provider.control.samples import Sample
from airflow_cdc_provider.core.markdown import code
from airflow_cdc_provider.core.table.questions import Answer, Question

ANSWERS = {
    Answer.APPLY: "alter the target with the statements above, and go on",
    Answer.RENAME: "the column was renamed: rename it in the target, and go on",
    Answer.IGNORE: "go on, and do not copy these columns any more until an operator requests a resync",
    Answer.RESYNC: "copy the table again with its current columns",
    Answer.REPAIR: "compare the table again, read the rows that differ from the source again, and merge them",
    Answer.LEAVE: "leave the table as it is; `airflow cdc decide` can answer later",
}


def question_doc(question: Question, sample: Sample) -> str:
    """What an operator needs to answer a question."""
    lines = _difference(question) if question.about_difference else _schema_change(question, sample)
    if question.statements:
        lines += ["", "The target would execute:", "", *(f"- {code(text)}" for text in question.statements)]
    if sample.values:
        lines += ["", "Some of the values that wait:", ""]
        lines += [
            f"- {', '.join(f'{code(name)} = {code(text)}' for name, text in row.items())}" for row in sample.values
        ]
    lines += ["", "| answer | effect |", "|---|---|"]
    lines += [f"| **{answer}** | {_effect(question, answer)} |" for answer in question.answers]
    return "\n".join(lines)


def _schema_change(question: Question, sample: Sample) -> list[str]:
    return [
        f"Table {code(question.table)} waits since window {question.window}:",
        "",
        *(f"- {code(change)}" for change in question.changes),
        "",
        f"{sample.records:,} changes wait in the change log. The other tables go on.",
    ]


def _difference(question: Question) -> list[str]:
    return [
        f"Table {code(question.table)} was compared at the end of window {question.window}:",
        "",
        *(f"- {code(change)}" for change in question.changes),
        "",
        "The table goes on. `airflow cdc differences` lists keys and columns.",
    ]


def _effect(question: Question, answer: Answer) -> str:
    if answer is Answer.RENAME:
        pairs = ", ".join(f"{code(old)} → {code(new)}" for old, new in question.renames)
        return f"{ANSWERS[answer]}: {pairs}"
    if answer is Answer.IGNORE:
        return f"{ANSWERS[answer]}: {', '.join(map(code, question.columns))}"
    return ANSWERS[answer]

"""The variables by which a task learns which counted things it has."""

from messiahs.core.model.counted import Counted
from messiahs.executor.os_process.assigned import variables_for


def test_gpus_have_the_variable_that_programs_look_at_too() -> None:
    found = variables_for((Counted(name="gpus", numbers=(0, 3)),), ("gpus",))
    assert dict(found) == {"MESSIAHS_GPUS": "0,3", "CUDA_VISIBLE_DEVICES": "0,3"}


def test_programs_that_see_their_gpus_alone_count_them_from_0_on() -> None:
    found = variables_for((Counted(name="gpus", numbers=(2, 3)),), ("gpus",), sees_others=False)
    assert dict(found) == {"MESSIAHS_GPUS": "2,3", "CUDA_VISIBLE_DEVICES": "0,1"}


def test_a_task_that_asked_for_none_is_told_that_it_has_none() -> None:
    found = variables_for((Counted(name="licences", numbers=(2,)),), ("gpus", "licences"))
    assert dict(found) == {"MESSIAHS_GPUS": "", "CUDA_VISIBLE_DEVICES": "", "MESSIAHS_LICENCES": "2"}


def test_a_machine_that_counts_nothing_sets_nothing() -> None:
    assert variables_for((), ()) == ()

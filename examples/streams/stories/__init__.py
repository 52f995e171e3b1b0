"""Stories: one for each state that a screen can show, and a day that combines most of them."""

from . import answers, day, repairs, surroundings, tasks, team, tools, work

STORIES = (
    *answers.STORIES,
    *tools.STORIES,
    *surroundings.STORIES,
    *work.STORIES,
    *tasks.STORIES,
    *team.STORIES,
    *repairs.STORIES,
    *day.STORIES,
)

__all__ = ["STORIES"]

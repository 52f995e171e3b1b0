"""Jobs for one thread: none is lost, none is taken twice, each comes in the order it was put in."""

from threading import Thread

from factwire.journal.sqlite.writer import Inbox

WAIT = 30


def test_jobs_of_many_threads_are_all_taken_and_in_order():
    inbox: Inbox[tuple[int, int] | None] = Inbox()
    taken: list[tuple[int, int]] = []

    def take() -> None:
        jobs: list[tuple[int, int] | None] = []
        while None not in jobs:
            jobs = inbox.take(7)
            assert 0 < len(jobs) <= 7
            taken.extend(job for job in jobs if job is not None)

    def put(lane: int) -> None:
        for number in range(2_000):
            inbox.put((lane, number))

    taker = Thread(target=take)
    putters = [Thread(target=put, args=(lane,)) for lane in range(4)]
    for thread in (taker, *putters):
        thread.start()
    for thread in putters:
        thread.join(WAIT)
    inbox.put(None)
    taker.join(WAIT)
    assert not taker.is_alive()
    for lane in range(4):
        assert [number for each, number in taken if each == lane] == list(range(2_000))

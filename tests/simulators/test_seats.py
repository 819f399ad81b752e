import numpy as np

from alma.simulators.seats import EMPTY, Seats


def begin(seats, count):
    chosen = seats.choose(count)
    return chosen, seats.sit_down(chosen, np.arange(count))


def test_only_the_present_state_of_an_episode_has_a_seat():
    seats = Seats(4)
    chosen, episodes = begin(seats, 3)
    seats.time[chosen[1]] = 5
    found = seats.present(episodes, np.array([0, 5, 1]))
    assert found.tolist() == [chosen[0], chosen[1], EMPTY]


def test_a_state_that_is_there_twice_has_one_seat():
    seats = Seats(2)
    (seat,), (episode,) = begin(seats, 1)
    assert seats.present(np.array([episode, episode]), np.zeros(2, int)).tolist() == [seat, EMPTY]


def test_who_leaves_is_not_found_any_more():
    seats = Seats(2)
    chosen, episodes = begin(seats, 2)
    seats.leave(chosen[:1])
    assert seats.present(episodes, np.zeros(2, int)).tolist() == [EMPTY, chosen[1]]


def test_empty_seats_are_taken_first_then_those_that_were_not_used_for_longest():
    seats = Seats(4)
    first, _ = begin(seats, 2)
    second, episodes = begin(seats, 2)
    assert not set(first) & set(second)
    seats.leave(second[1:])
    seats.present(episodes[:1], np.zeros(1, int))
    assert begin(seats, 3)[0].tolist() == sorted([*first, second[1]])


def test_seats_are_used_again_before_others():
    """Each seat that was ever used costs the memory of a simulator."""
    seats = Seats(100)
    used = set()
    for _ in range(10):
        chosen, _ = begin(seats, 3)
        used |= set(chosen.tolist())
        seats.leave(chosen)
    assert used == {0, 1, 2}


def test_episodes_have_numbers_of_their_own():
    seats = Seats(3)
    numbers = np.concatenate([begin(seats, 3)[1] for _ in range(4)])
    assert len(set(numbers.tolist())) == 12
    assert (numbers >= 0).all()

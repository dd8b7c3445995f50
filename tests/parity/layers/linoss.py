"""Forced oscillators that all channels share, by implicit or symplectic steps (Rusch and Rus 2024)."""
import torch

from definitions.state_spaces import complex_of, gated, read_states

SETTINGS = [{"states": 7}, {"states": 5, "discretization": "imex"},
            {"states": 3, "discretization": "imex", "bidirectional": False, "output": "half_glu1"}]


def sizes(settings, about):
    return {"P": settings["states"]}


def layer(x, valid, w, settings, about):
    step, implicit = w["step"].sigmoid(), settings["discretization"] == "im"
    a = torch.maximum(w["a"], 1e-6 / step**2)
    a = a if implicit else torch.minimum(a, 3.99 / step**2)
    b = complex_of(w["b"], 0)

    def positions(u):
        velocity, position, rows = 0, 0, []
        for force in u.to(b.dtype) @ b.T:
            before, velocity = velocity, velocity + step * (force - a * position)
            if implicit:
                s = 1 / (1 + step**2 * a)
                velocity, position = s * velocity, s * (position + step * before + step**2 * force)
            else:
                position = position + step * velocity
            rows.append(position)
        return torch.stack(rows)

    return gated(read_states(x, valid, w, settings, positions), w, settings["output"])

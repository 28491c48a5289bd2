"""Training and sampling of the paired categorical bridge: the model of A10."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ghostpoi.attack.evidence import Evidence
from ghostpoi.attack.inference.bridge_denoiser import Batch, Corpus, Denoiser
from ghostpoi.attack.inference.bridge_settings import BridgeSettings
from ghostpoi.attack.inference.categorical_bridge import Chain
from ghostpoi.data.checkins import Ints
from ghostpoi.models.devices import precise, seeded
from ghostpoi.randomness import Seed

BATCH_POSITIONS = (1 << 13, 1 << 18)  # padded positions read at once in sampling: on a CPU, on CUDA


def restore(evidence: Evidence, settings: BridgeSettings, seed: Seed, device: torch.device) -> Ints:
    """Return the POIs that win the vote of the ways back, (N,); without a leak, the release."""
    released, clean = evidence.pairs()
    if not len(clean) or evidence.leaked.all():
        return evidence.released.poi
    chain = Chain(evidence.rows - 1, settings.steps, settings.jump)
    channel = evidence.rule.channel.covering(evidence.released.poi) if evidence.rule and settings.restricted else None
    leaked, rest = (
        Corpus(evidence.released.take(which), channel, settings.model, device)
        for which in (evidence.leaked, ~evidence.leaked)
    )
    denoiser = _train(settings, chain, leaked, clean, seed)
    restored = evidence.released.poi.copy()
    restored[~evidence.positions] = _vote(settings, denoiser, rest, seed).cpu().numpy()
    if channel is None:  # the denoiser knows nothing about a released POI that never leaked: it stays, as in A3
        unknown = ~np.isin(evidence.released.poi, released)
        restored[unknown] = evidence.released.poi[unknown]
    return restored


def _train(settings: BridgeSettings, chain: Chain, corpus: Corpus, clean: Ints, seed: Seed) -> Denoiser:
    """Learn x_0 from random states of the bridges between the leaked pairs; the weights are averaged."""
    device, t = corpus.device, settings.training
    model = Denoiser(settings.model, chain, seed.torch_seed("paired_bridge", "weights"))
    if corpus.channel is not None:
        # Among few options popularity decides most, and counting it works better than learning it from few sessions.
        model.bias.data += torch.from_numpy(np.log(np.bincount(clean, minlength=len(model.bias)) + 0.5)).float()
    model.to(device).train()
    weights = list(model.parameters())
    averaged = [w.detach().clone() for w in weights]
    optimizer = torch.optim.AdamW(weights, lr=t.learning_rate, weight_decay=t.weight_decay, fused=True)
    noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "states"))
    with seeded(device, seed.torch_seed("paired_bridge", "dropout")):
        for number, (batch, x0) in enumerate(_batches(settings, corpus, clean, seed)):
            n = torch.randint(1, chain.steps + 1, (batch.windows,), generator=noise, device=device)[batch.window]
            end = batch.released
            uniform = torch.rand(2, len(x0), generator=noise, device=device)
            now = chain.draw(x0, end, n.float(), (chain.steps - n).float(), uniform)
            with precise(t.precision, device):
                predicted = model.predict(model.hidden(corpus, batch, now, n), now, end, n, batch.options)
            likelihood = predicted.of(x0)
            each = chain.divergence(x0, now, n.float(), predicted)
            each = each - settings.cross_entropy * likelihood.clamp(min=1e-20).log()
            possible = likelihood > 0  # a release may break the rule in places
            loss = torch.where(possible, each, 0).sum() / possible.sum().clamp(min=1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            if t.clip:
                nn.utils.clip_grad_norm_(weights, t.clip)
            optimizer.step()
            # The first updates count little: the average must not keep the random weights that it starts from.
            torch._foreach_lerp_(averaged, [w.detach() for w in weights], max(1 - settings.average, 1 / (1 + number)))
    with torch.no_grad():
        for weight, average in zip(weights, averaged, strict=True):
            weight.copy_(average)
    return model.eval()


def _batches(settings: BridgeSettings, corpus: Corpus, clean: Ints, seed: Seed) -> Iterator[tuple[Batch, Tensor]]:
    """Yield all windows and their clean POIs (M,), in a new order every epoch."""
    origin, t, windows = (
        torch.from_numpy(clean.astype(np.int64)).to(corpus.device),
        settings.training,
        len(corpus.length),
    )
    size = max(t.batch_sessions, -(-t.epochs * windows // settings.max_updates))
    for epoch in range(t.epochs):
        order = seed.generator("paired_bridge", "order", epoch).permutation(windows)
        for first in range(0, windows, size):
            batch = corpus.batch(order[first : first + size])
            yield batch, origin[batch.place]


@torch.no_grad()
def _vote(settings: BridgeSettings, model: Denoiser, corpus: Corpus, seed: Seed) -> Tensor:
    """Return the POI with the largest total probability over all ways back, (N,)."""
    device = corpus.device
    restored = torch.empty(len(corpus.poi), dtype=torch.long, device=device)
    noise = torch.Generator(device).manual_seed(seed.torch_seed("paired_bridge", "samples"))
    for windows in corpus.by_length(BATCH_POSITIONS[device.type == "cuda"]):
        batch = corpus.batch(windows)
        ways = [_way_back(settings, model, corpus, batch, noise) for _ in range(settings.samples)]
        poi, sure = map(torch.stack, zip(*ways, strict=True))  # (samples, M)
        votes = torch.where(poi[:, None] == poi[None], sure[None], 0).sum(1)  # of all samples for the POI of each
        restored[batch.place] = poi.gather(0, votes.argmax(0, keepdim=True)).squeeze(0)
    return restored


def _way_back(
    settings: BridgeSettings, model: Denoiser, corpus: Corpus, batch: Batch, noise: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Sample from step N back to the argmax at step 1; return it and its probability, (M,) each."""
    end = now = batch.released
    for step in range(model.chain.steps, 0, -1):
        n = torch.full_like(end, step)
        with precise(settings.training.precision, end.device):
            hidden = model.hidden(corpus, batch, now, n)
        uniform = torch.rand(3, len(end), generator=noise, device=end.device)
        likely, sure, drawn = model.guess(hidden, now, end, n, batch.options, uniform[2])
        now = model.chain.draw(drawn, now, (n - 1).float(), torch.ones_like(n).float(), uniform[:2])
    return likely, sure

"""AutoAugment: the sub-policies as published, and magnitudes as torchvision reads them.

torchvision cannot be installed beside every torch, so its definitions are written down here: ten
values for each operation, evenly spaced from none to the strongest.
"""

import math

import pytest
import torch

pytest.importorskip("kornia", reason="the package kornia is not installed")

from headwise.data.autoaugment import WITHOUT_SIGN, _operation, _stages

#: Cubuk et al. 2019, Table 7: operation, probability, magnitude, twice for each sub-policy.
CIFAR10 = """
invert .1 7 contrast .2 6
rotate .7 2 translate_x .3 9
sharpness .8 1 sharpness .9 3
shear_y .5 8 translate_y .7 9
auto_contrast .5 8 equalize .9 2
shear_y .2 7 posterize .3 7
color .4 3 brightness .6 7
sharpness .3 9 brightness .7 9
equalize .6 5 equalize .5 1
contrast .6 7 sharpness .6 5
color .7 7 translate_x .5 8
equalize .3 7 auto_contrast .4 8
translate_y .4 3 sharpness .2 6
brightness .9 6 color .2 8
solarize .5 2 invert .0 3
equalize .2 0 auto_contrast .6 0
equalize .2 8 equalize .6 4
color .9 9 equalize .6 6
auto_contrast .8 4 solarize .2 8
brightness .1 3 color .7 0
solarize .4 5 auto_contrast .9 3
translate_y .9 9 translate_y .7 9
auto_contrast .9 2 solarize .8 3
equalize .8 8 invert .1 3
translate_y .7 9 auto_contrast .9 1
"""

#: The strongest of ten evenly spaced values. Shifts are the authors' 10 pixels of 32.
RANGES = {
    "shear_x": 0.3,
    "shear_y": 0.3,
    "translate_x": 10 / 32,
    "translate_y": 10 / 32,
    "rotate": math.radians(30),
    "brightness": 0.9,
    "color": 0.9,
    "contrast": 0.9,
    "sharpness": 0.9,
    "posterize": 4,
    "solarize": 1,
}


def published():
    for line in CIFAR10.split("\n")[1:-1]:
        words = line.split()
        yield [(words[i], float(words[i + 1]), int(words[i + 2])) for i in (0, 3)]


def test_sub_policies_are_the_published_ones():
    pairs = list(published())
    assert len(pairs) == 25
    for place, stage in enumerate(_stages("cifar10")):
        wanted = [pair[place] for pair in pairs]
        assert list(stage.kinds) == [kind for kind, _, _ in wanted]
        assert stage.probabilities.tolist() == pytest.approx([p for _, p, _ in wanted])


def test_strengths_are_the_tenth_parts_of_their_ranges():
    for place, stage in enumerate(_stages("cifar10")):
        for number, pair in enumerate(published()):
            kind, _, magnitude = pair[place]
            if kind in RANGES:
                steps = torch.linspace(0, RANGES[kind], 10)
                assert float(stage.strengths[number]) == pytest.approx(float(steps[magnitude]))


@pytest.mark.parametrize("magnitude", range(10))
def test_posterize_and_solarize_by_hand(magnitude):
    """Bits 8 - round(m / (9 / 4)), and a threshold of 255 (1 - m / 9), on every byte."""
    values = torch.arange(256, dtype=torch.float64).view(1, 1, 16, 16)
    bits = 8 - round(magnitude / (9 / 4))
    kept = (values.long() >> (8 - bits)) << (8 - bits)
    found = _operation("posterize")(values / 255, torch.tensor([4 * magnitude / 9]))
    assert torch.equal((found * 255).round().long(), kept)
    limit = 255 * (1 - magnitude / 9)
    turned = torch.where(values >= limit - 1e-9, 255 - values, values)
    strength = torch.tensor([magnitude / 9], dtype=torch.float64)
    found = _operation("solarize")(values / 255, strength)
    # A byte at the threshold itself may fall on either side of it.
    assert ((found * 255 - turned).abs() < 1e-6).float().mean() >= 255 / 256


def test_signs_are_drawn_where_an_operation_has_two_directions():
    assert set(WITHOUT_SIGN) == {"posterize", "solarize"}


def test_street_digits_have_their_own_policy():
    one, two = (_stages(name)[0] for name in ("cifar10", "svhn"))
    assert len(two.kinds) == 25
    assert one.kinds != two.kinds
    # Cubuk et al. 2019, Table 8, the first and the last sub-policy.
    assert (two.kinds[0], round(float(two.probabilities[0]), 3)) == ("shear_x", 0.9)
    assert (two.kinds[24], round(float(two.probabilities[24]), 3)) == ("shear_x", 0.7)

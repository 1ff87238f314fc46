"""Tokens to measure, to train on and to advise on: neighbours, regression, images, text."""

from headwise.data.augmentation import ImageAugmentation, Mixed, WordDropout
from headwise.data.autoaugment import auto_augment
from headwise.data.baseline import trivial_error
from headwise.data.epochs import (
    EpochTask,
    Labelled,
    Parts,
    Standardised,
    as_words,
    cut_validation,
)
from headwise.data.hugging_face_sets import read_hugging_face
from headwise.data.images import LabelledImages, digits, patches, standardised
from headwise.data.incontext import Curriculum, InContext
from headwise.data.neighbours import (
    BiasedNearestNeighbour,
    FarthestNeighbour,
    NearestNeighbour,
    OrthonormalPairs,
)
from headwise.data.next_token import NextToken
from headwise.data.official import (
    ImageSet,
    TextSet,
    read_cifar10,
    read_cifar100,
    read_imdb,
    read_svhn,
)
from headwise.data.points import Planted, Points, Uniform, effective_dimension
from headwise.data.samples import Samples
from headwise.data.sets import (
    KNOWN_SETS,
    FoundSets,
    KnownSet,
    data_folder,
    find_sets,
    open_images,
    open_texts,
    require_sets,
)
from headwise.data.sources import Source, read_source
from headwise.data.tasks import Batch, Drawn, Task
from headwise.data.text import Vocabulary, read_text, tokenizer_file, windows

__all__ = [
    "KNOWN_SETS",
    "Batch",
    "BiasedNearestNeighbour",
    "Curriculum",
    "Drawn",
    "EpochTask",
    "FarthestNeighbour",
    "FoundSets",
    "ImageAugmentation",
    "ImageSet",
    "InContext",
    "KnownSet",
    "Labelled",
    "LabelledImages",
    "Mixed",
    "NearestNeighbour",
    "NextToken",
    "OrthonormalPairs",
    "Parts",
    "Planted",
    "Points",
    "Samples",
    "Source",
    "Standardised",
    "Task",
    "TextSet",
    "Uniform",
    "Vocabulary",
    "WordDropout",
    "as_words",
    "auto_augment",
    "cut_validation",
    "data_folder",
    "digits",
    "effective_dimension",
    "find_sets",
    "open_images",
    "open_texts",
    "patches",
    "read_cifar10",
    "read_cifar100",
    "read_hugging_face",
    "read_imdb",
    "read_source",
    "read_svhn",
    "read_text",
    "require_sets",
    "standardised",
    "tokenizer_file",
    "trivial_error",
    "windows",
]

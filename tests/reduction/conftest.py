"""Tiny random models of every family that can be cut."""

import pytest
import torch

SIZES = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 24,
    "vocab_size": 61,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
FAMILIES = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED | {"sliding_window": 6}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "bert": ("BertModel", "BertConfig", SIZES | {"max_position_embeddings": 64}),
}


@pytest.fixture(scope="session")
def tiny():
    transformers = pytest.importorskip("transformers")

    def build(family, **more):
        model, config, sizes = FAMILIES[family]
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = getattr(transformers, model)(getattr(transformers, config)(**sizes | more))
            for name, parameter in made.named_parameters():
                if name.endswith("bias"):
                    torch.nn.init.normal_(parameter, std=0.3)
        return made.eval()

    return build


@pytest.fixture(scope="session")
def batches():
    generator = torch.Generator().manual_seed(4)
    return [{"input_ids": torch.randint(3, 61, (2, 20), generator=generator)} for _ in range(3)]


@pytest.fixture(scope="session")
def tokenizer():
    """One token for each word, with the special tokens of BERT."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    words = {word: i for i, word in enumerate([*special, *(f"word{n}" for n in range(53))])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)

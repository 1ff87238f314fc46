"""Hugging Face models of two small layers, built from their configs: nothing is fetched."""

import torch

SIZES = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 16,
    "vocab_size": 31,
    "initializer_range": 0.2,  # no singular value lies so low that rounding decides
}
GROUPED = SIZES | {"num_key_value_heads": 2, "pad_token_id": 0}
IDS = torch.randint(3, 31, (2, 7), generator=torch.Generator().manual_seed(1))
RIGHT = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
PADDING = {"none": None, "right": RIGHT, "left": RIGHT.flip(-1)}

#: Class, config, sizes.
FAMILIES = {
    "bert": ("BertForSequenceClassification", "BertConfig", SIZES),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 16, "n_head": 4, "n_layer": 2, "vocab_size": 31, "initializer_range": 0.2}
        | {"bos_token_id": 1, "eos_token_id": 2},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 6}),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        GROUPED | {"head_dim": 6, "attn_logit_softcapping": 0.7, "sliding_window": 3},
    ),
    "t5": (
        "T5EncoderModel",
        "T5Config",
        {"d_model": 16, "d_kv": 4, "num_heads": 4, "num_layers": 2, "vocab_size": 31, "d_ff": 16},
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        GROUPED | {"head_dim": 4, "num_local_experts": 2, "num_experts_per_tok": 1},
    ),
    "vit": (
        "ViTModel",
        "ViTConfig",
        SIZES | {"image_size": 8, "patch_size": 4},
    ),
}


def tiny(transformers, family, implementation="eager", **more):
    """A model in evaluation mode, the same at every call."""
    model, config, sizes = FAMILIES[family]
    settings = getattr(transformers, config)(**sizes, **more)
    settings._attn_implementation = implementation
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, model)(settings).eval()


def inputs(family, padding="none"):
    """What the model is called with: two sequences of seven tokens, or two images."""
    if family == "vit":
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))}
    mask = PADDING[padding]
    return {"input_ids": IDS} | ({} if mask is None else {"attention_mask": mask})

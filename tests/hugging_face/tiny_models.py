"""Hugging Face models of two or three small layers, built from configs: nothing is fetched."""

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
FREE = GROUPED | {"head_dim": 6}
MLA = SIZES | {
    "pad_token_id": 0,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 8,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 2,
}
IMAGE = SIZES | {"image_size": 8, "patch_size": 4}
GPT = {"n_embd": 16, "n_head": 4, "n_layer": 2, "vocab_size": 31, "bos_token_id": 1}
T5 = {"d_model": 16, "d_kv": 4, "num_heads": 4, "num_layers": 2, "vocab_size": 31, "d_ff": 16}
IDS = torch.randint(3, 31, (2, 7), generator=torch.Generator().manual_seed(1))
RIGHT = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
PADDING = {"none": None, "right": RIGHT, "left": RIGHT.flip(-1)}

#: Class, config and sizes.
TEXT = {
    "bert": ("BertForSequenceClassification", "BertConfig", SIZES),
    "roberta": ("RobertaModel", "RobertaConfig", SIZES | {"max_position_embeddings": 12}),
    "albert": ("AlbertModel", "AlbertConfig", SIZES | {"num_hidden_layers": 3}),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        {"dim": 16, "n_heads": 4, "n_layers": 2, "hidden_dim": 16, "vocab_size": 31}
        | {"initializer_range": 0.2},
    ),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        SIZES | {"local_attention": 4, "global_attn_every_n_layers": 2, "pad_token_id": 0},
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT | {"initializer_range": 0.2, "eos_token_id": 2}),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SIZES),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        SIZES | {"ffn_dim": 16, "word_embed_proj_dim": 16, "init_std": 0.2, "pad_token_id": 0},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", FREE | {"sliding_window": 3}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", FREE),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        FREE | {"attn_logit_softcapping": 0.7, "sliding_window": 3},
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        FREE | {"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        FREE
        | {"num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 3}
        | {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    "t5": ("T5EncoderModel", "T5Config", T5),
    "deepseek_v2": ("DeepseekV2ForCausalLM", "DeepseekV2Config", MLA),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", MLA),
    "clip_text": (
        "CLIPTextModel",
        "CLIPTextConfig",
        SIZES | {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
    ),
    "siglip_text": ("SiglipTextModel", "SiglipTextConfig", SIZES),
}
IMAGES = {
    "vit": ("ViTModel", "ViTConfig", IMAGE),
    "dinov2": ("Dinov2Model", "Dinov2Config", IMAGE),
    "siglip_image": ("SiglipVisionModel", "SiglipVisionConfig", IMAGE),
    "clip_image": ("CLIPVisionModel", "CLIPVisionConfig", IMAGE),
}
#: Families that do not use the attention interface.
MAPPED = {
    "bloom": ("BloomForCausalLM", "BloomConfig", GPT | {"hidden_size": 16}),
    "falcon": (
        "FalconForCausalLM",
        "FalconConfig",
        SIZES | {"new_decoder_architecture": False, "alibi": False},
    ),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", GPT | {"rotary_dim": 2}),
    "deberta": ("DebertaModel", "DebertaConfig", SIZES),
    "xlnet": (
        "XLNetModel",
        "XLNetConfig",
        {"d_model": 16, "n_head": 4, "n_layer": 2, "d_inner": 16, "vocab_size": 31},
    ),
}
FAMILIES = TEXT | IMAGES | MAPPED


def tiny(transformers, family, implementation="eager", **more):
    """A model in evaluation mode, the same at every call."""
    model, config, sizes = FAMILIES[family]
    return built(transformers, model, config, sizes | more, implementation)


def built(transformers, model, config, sizes, implementation="eager"):
    settings = getattr(transformers, config)(**sizes)
    settings._attn_implementation = implementation
    settings._experts_implementation = "eager"  # the grouped kernels have no float64
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = getattr(transformers, model)(settings).eval()
        if family_has_sinks(made):
            for parameter in made.parameters():
                torch.nn.init.normal_(parameter, std=0.3)
    return made


def family_has_sinks(model):
    return any(name.endswith("sinks") for name, _ in model.named_parameters())


def inputs(family, padding="none"):
    """What the model is called with: two sequences of seven tokens, or two images."""
    if family in IMAGES:
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))}
    mask = PADDING[padding]
    return {"input_ids": IDS} | ({} if mask is None else {"attention_mask": mask})

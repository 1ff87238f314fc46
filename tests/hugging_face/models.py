"""Configs of real models, as far as attention and sizes go."""

SMALL_LLAMA = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2}
LLAMA3 = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
}
MISTRAL = LLAMA3 | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "max_position_embeddings": 32_768,
    "sliding_window": 4096,
}
JAMBA = LLAMA3 | {
    "architectures": ["JambaForCausalLM"],
    "model_type": "jamba",
    "mamba_d_state": 16,
    "attn_layer_period": 8,
    "max_position_embeddings": 262_144,
    "sliding_window": None,
}
NEMOTRON_H = {
    "architectures": ["NemotronHForCausalLM"],
    "model_type": "nemotron_h",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "mamba_num_heads": 128,
    "ssm_state_size": 128,
}
MAMBA2 = {
    "architectures": ["Mamba2ForCausalLM"],
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
}
VISION = {"hidden_size": 1152, "num_attention_heads": 16, "image_size": 896, "patch_size": 14}
GEMMA3 = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 131_072,
    },
    "vision_config": VISION,
}
#: Names no heads for the text: those are the family's default.
GEMMA3_BRIEF = GEMMA3 | {"text_config": {"model_type": "gemma3_text", "hidden_size": 2560}}
QWEN2_VL = {
    "architectures": ["Qwen2VLForConditionalGeneration"],
    "model_type": "qwen2_vl",
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32_768,
    "sliding_window": 32_768,
    "use_sliding_window": False,
    "vision_config": {"embed_dim": 1280, "num_heads": 16},
}
BLIP2_T5 = {
    "architectures": ["Blip2ForConditionalGeneration"],
    "text_config": {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "d_model": 2048,
        "num_heads": 32,
        "d_kv": 64,
        "num_decoder_layers": 24,
    },
}
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 131_072,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
DEEPSEEK_V3 = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 163_840,
}
WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "d_model": 512,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_layers": 6,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "is_encoder_decoder": True,
}
T5 = {
    "architectures": ["T5ForConditionalGeneration"],
    "model_type": "t5",
    "d_model": 512,
    "num_heads": 8,
    "d_kv": 64,
    "n_positions": 512,
    "is_encoder_decoder": True,
}
CLIP = {
    "architectures": ["CLIPModel"],
    "model_type": "clip",
    "text_config": {
        "model_type": "clip_text_model",
        "hidden_size": 512,
        "num_attention_heads": 8,
        "max_position_embeddings": 77,
    },
    "vision_config": {"hidden_size": 768, "num_attention_heads": 12},
}
FALCON = {
    "architectures": ["FalconForCausalLM"],
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "multi_query": True,
}
QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "sliding_window": None,
    "use_sliding_window": False,
}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_positions": 1024,
}
BIGCODE = {
    "architectures": ["GPTBigCodeForCausalLM"],
    "model_type": "gpt_bigcode",
    "n_embd": 6144,
    "n_head": 48,
    "n_positions": 8192,
    "multi_query": True,
}
VIT = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "hidden_size": 768,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 16,
}
DECODERS = [LLAMA3, MISTRAL, JAMBA, GEMMA3, QWEN3, QWEN2_VL, GPT_OSS, DEEPSEEK_V3, FALCON]
DECODERS += [GPT2, BIGCODE]
ALL = [*DECODERS, WHISPER, T5, CLIP, VIT]

"""Read a Llama model from a GGUF file with the gguf package alone, where accelerate is missing."""

from __future__ import annotations

from pathlib import Path

import torch

#: Names in the file and in transformers.
NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def load_llama(path: Path):
    """The model in float32; equal to what transformers makes of the file."""
    from gguf import GGUFReader, dequantize
    from transformers import LlamaConfig, LlamaForCausalLM

    reader = GGUFReader(path)

    def field(name):
        return reader.fields[f"llama.{name}"].contents()

    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    config = LlamaConfig(
        hidden_size=field("embedding_length"),
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        vocab_size=int(next(t for t in reader.tensors if t.name == "token_embd.weight").shape[-1]),
        rope_parameters={"rope_type": "default", "rope_theta": field("rope.freq_base")},
        tie_word_embeddings=True,
    )
    weights = {}
    for tensor in reader.tensors:
        found = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
        if ".attn_q." in tensor.name or ".attn_k." in tensor.name:
            # The file orders the dimensions of a head as adjacent pairs, transformers in halves.
            count = heads if ".attn_q." in tensor.name else kv_heads
            found = found.unflatten(0, (count, -1, 2)).transpose(1, 2).flatten(0, 2)
        weights[_name(tensor.name)] = found
    model = LlamaForCausalLM(config)
    missing = model.load_state_dict(weights, strict=False)
    assert set(missing.missing_keys) <= {"lm_head.weight"}, missing
    assert not missing.unexpected_keys, missing
    return model.eval()


def _name(name: str) -> str:
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{kind}"

"""Models whose attention was cut by headwise: the file that saved folders carry.

It needs torch and transformers alone. ``config.headwise`` holds the base class and, for each layer,
what is left of keys and values:

| keys | meaning |
|---|---|
| full | as in the original |
| factors | no rotary positions: queries and keys of a lower rank |
| pairs | rotary positions: some rotation pairs are left, with their own angles |
| latent | rotary positions: a vector of a lower rank is cached, and keys are restored from it |
| rotated | the same after the rotation: queries meet the cached vector, nothing is restored |

Values always have their own lower rank; the output map reads them directly.
"""

import torch
import transformers
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **_):
    """Attend step by step, as the eager functions of transformers do."""
    groups = module.num_key_value_groups
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    weights = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = nn.functional.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def turned(states, cosine, sine):
    """Turn pairs of dimensions (i, i + m) by angles of shape (batch, heads or 1, n, m)."""
    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class CutAttention(nn.Module):
    """What every cut layer shares: heads, the call of the attention function, the scale."""

    def __init__(self, config, layer_idx, cut):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.heads = config.num_attention_heads
        self.kv_heads = getattr(config, "num_key_value_heads", None) or self.heads
        self.num_key_value_groups = self.heads // self.kv_heads
        self.keys, self.rank, self.value_rank = cut["keys"], cut["rank"], cut["value_rank"]
        whole = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.scaling = whole**-0.5
        self.whole = whole

    def split(self, states, heads):
        """Return (batch, heads, n, rank)."""
        return states.unflatten(-1, (heads, -1)).transpose(1, 2)

    def attend(self, query, key, value, attention_mask, dropout, **named):
        """Attend by the function that the config names."""
        function = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        # Fused kernels want one size of queries, keys and values; zeros change nothing.
        rank = value.shape[-1]
        size = max(query.shape[-1], rank)
        query, key, value = (
            nn.functional.pad(each, (0, size - each.shape[-1])) for each in (query, key, value)
        )
        output, weights = function(
            self,
            query,
            key,
            value,
            attention_mask,
            dropout=dropout if self.training else 0.0,
            scaling=self.scaling,
            **named,
        )
        return output[..., :rank].flatten(-2).contiguous(), weights


class CutDecoderAttention(CutAttention):
    """Attention of Llama, Mistral and Qwen2 with fewer dimensions for keys and values."""

    #: Angles of all cached tokens: every layer of one call asks for the same.
    last_angles = None
    last_phases = None

    def __init__(self, config, layer_idx, cut, old):
        super().__init__(config, layer_idx, cut)
        self.is_causal, self.dropout = True, config.attention_dropout
        self.sliding_window = getattr(
            old, "sliding_window", getattr(config, "sliding_window", None)
        )
        width, biased = config.hidden_size, old.k_proj.bias is not None
        latent = self.keys == "latent"
        asked = self.whole if self.keys in ("latent", "rotated") else self.rank
        self.q_proj = nn.Linear(width, self.heads * asked, bias=biased)
        self.k_proj = nn.Linear(width, self.rank if latent else self.kv_heads * asked, bias=biased)
        self.v_proj = nn.Linear(width, self.kv_heads * self.value_rank, bias=biased)
        self.o_proj = nn.Linear(
            self.heads * self.value_rank, width, bias=old.o_proj.bias is not None
        )
        if self.keys in ("latent", "rotated"):
            self.k_restore = nn.Linear(self.rank, self.kv_heads * self.whole, bias=False)
        if self.keys == "rotated":
            self.k_compress = nn.Linear(self.kv_heads * self.whole, self.rank, bias=False)
        if self.keys == "pairs":
            pairs = torch.zeros(self.kv_heads, self.rank // 2, dtype=torch.int64)
            self.register_buffer("pairs", pairs)

    def forward(
        self,
        hidden_states,
        position_embeddings,
        attention_mask=None,
        past_key_values=None,
        **named,
    ):
        """Project, turn, cache, attend; the cache holds what is left of keys and values."""
        query = self.split(self.q_proj(hidden_states), self.heads)
        value = self.split(self.v_proj(hidden_states), self.kv_heads)
        key = self.k_proj(hidden_states)
        key = key.unsqueeze(1) if self.keys == "latent" else self.split(key, self.kv_heads)
        angles = position_embeddings
        if self.keys != "latent":
            query, key = self._turned(query, key, *angles)
        if self.keys == "rotated":
            key = self.k_compress(key.transpose(1, 2).flatten(2)).unsqueeze(1)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        one = query.shape[2] == 1 and self.config._attn_implementation == "sdpa"
        if self.keys == "latent" and one and key.dtype in (torch.float32, torch.float64):
            query, key = self._restored_in_place(query, key, *angles)
        elif self.keys == "latent":
            query, key = self._restored(query, key, *angles)
        elif self.keys == "rotated" and one:
            query = self._met(query)
        elif self.keys == "rotated":
            key = self.split(self.k_restore(key.squeeze(1)), self.kv_heads)
        if one and attention_mask is None and not self.training:
            return self.o_proj(self._attend_once(query, key, value)), None
        if key.shape[1] != value.shape[1]:
            key = key.expand(-1, value.shape[1], -1, -1)
        named.setdefault("sliding_window", self.sliding_window)
        output, weights = self.attend(query, key, value, attention_mask, self.dropout, **named)
        return self.o_proj(output), weights

    def _met(self, query):
        """Return what queries ask of the cached vector: (batch, heads, n, rank)."""
        restore = self.k_restore.weight.unflatten(0, (self.kv_heads, -1))
        return query @ restore.repeat_interleave(self.num_key_value_groups, dim=0)

    def _attend_once(self, query, key, value):
        """Attend from one token to all that are cached; keys are not repeated for their group."""
        query = query.squeeze(2).unflatten(1, (key.shape[1], -1))
        weights = (query @ key.mT * self.scaling).softmax(-1, dtype=torch.float32)
        weights = weights.to(value.dtype).flatten(1, 2).unflatten(1, (value.shape[1], -1))
        return (weights @ value).flatten(1).unsqueeze(1)

    def _turned(self, query, key, cosine, sine):
        half = cosine.shape[-1] // 2
        cosine, sine = cosine[:, None, :, :half], sine[:, None, :, :half]
        if self.keys in ("full", "rotated"):
            return turned(query, cosine, sine), turned(key, cosine, sine)
        own = [self._of_pairs(each) for each in (cosine, sine)]
        shared = [each.repeat_interleave(self.num_key_value_groups, dim=1) for each in own]
        return turned(query, *shared), turned(key, *own)

    def _of_pairs(self, table):
        """Return (batch, kv_heads, n, m): the entries of the pairs that each head has."""
        return table[..., self.pairs].squeeze(1).transpose(1, 2)

    def _restored(self, query, key, cosine, sine):
        """Turn by places in the cache: logits depend on distances alone."""
        half = cosine.shape[-1] // 2
        query = turned(query, cosine[:, None, :, :half], sine[:, None, :, :half])
        key = self.split(self.k_restore(key.squeeze(1)), self.kv_heads)
        return query, turned(key, *self._past_angles(key, cosine, sine))

    def _restored_in_place(self, query, key, cosine, sine):
        """Do the same for one token: keys turn as complex numbers, without a copy of them."""
        # Both dimensions of a pair stand side by side in queries and keys: logits do not change.
        half = cosine.shape[-1] // 2
        query = turned(query, cosine[:, None, :, :half], sine[:, None, :, :half])
        query = query.unflatten(-1, (2, half)).transpose(-1, -2).flatten(-2)
        maps = self.k_restore.weight.unflatten(0, (self.kv_heads, 2, half))
        states = nn.functional.linear(key.squeeze(1), maps.transpose(1, 2).flatten(0, 2))
        pairs = torch.view_as_complex(states.unflatten(-1, (self.kv_heads, half, 2)))
        angles = self._past_angles(key, cosine, sine)
        phases = CutDecoderAttention.last_phases
        if phases is None or phases[0] is not angles[0]:
            phases = (angles[0], torch.complex(*angles).transpose(1, 2))
            CutDecoderAttention.last_phases = phases
        pairs.mul_(phases[1])
        return query, self.split(states, self.kv_heads)

    def _past_angles(self, key, cosine, sine):
        """Return the angles of all cached tokens, from those of the tokens of this call."""
        length, half = key.shape[2], cosine.shape[-1] // 2
        now = cosine.shape[1]
        if length == now:
            return cosine[:, None, :, :half].to(key.dtype), sine[:, None, :, :half].to(key.dtype)
        seen = CutDecoderAttention.last_angles
        if seen is not None and seen[0] is cosine and seen[1] == length:
            return seen[2]
        steps = torch.arange(1 - length, 1, device=key.device)
        back = steps[:, None] * self._frequencies(key.device)
        last_cosine, last_sine = cosine[:, None, -1:, :half], sine[:, None, -1:, :half]
        c, s = back.cos(), back.sin()
        rows = (last_cosine * c - last_sine * s, last_sine * c + last_cosine * s)
        found = tuple(each.to(key.dtype) for each in rows)
        CutDecoderAttention.last_angles = (cosine, length, found)
        return found

    def _frequencies(self, device):
        """Return the angle of each pair for one step of position."""
        if getattr(self, "_steps", None) is None or self._steps.device != device:
            base = self.config.rope_parameters["rope_theta"]
            powers = torch.arange(0, self.whole, 2, device=device).float() / self.whole
            self._steps = (1.0 / base**powers).double()  # as transformers rounds them
        return self._steps


class CutBertAttention(CutAttention):
    """Self-attention of BERT with fewer dimensions for queries and keys, and for values."""

    def __init__(self, config, layer_idx, cut, old):
        super().__init__(config, layer_idx, cut)
        self.is_causal, self.dropout = False, config.attention_probs_dropout_prob
        width = config.hidden_size
        self.query = nn.Linear(width, self.heads * self.rank)
        self.key = nn.Linear(width, self.heads * self.rank)
        self.value = nn.Linear(width, self.heads * self.value_rank)

    def forward(self, hidden_states, attention_mask=None, past_key_values=None, **named):
        """Project and attend."""
        query, key, value = (
            self.split(linear(hidden_states), self.heads)
            for linear in (self.query, self.key, self.value)
        )
        return self.attend(query, key, value, attention_mask, self.dropout, **named)


def cut_layers(model, cuts):
    """Replace the attention of a model by empty layers of the sizes in ``cuts``."""
    for index, (cut, layer) in enumerate(zip(cuts, attention_blocks(model), strict=True)):
        if cut is None:
            continue
        config = model.config
        if hasattr(layer, "self_attn"):
            layer.self_attn = CutDecoderAttention(config, index, cut, layer.self_attn)
        else:
            block = layer.attention
            block.self = CutBertAttention(config, index, cut, block.self)
            block.output.dense = nn.Linear(
                config.num_attention_heads * cut["value_rank"], config.hidden_size
            )
    return model


def attention_blocks(model):
    """Return the layers of a decoder or a BERT encoder that hold attention, in order."""
    inner = model.base_model
    return inner.layers if hasattr(inner, "layers") else inner.encoder.layer


def _cut_class(name):
    base = getattr(transformers, name)

    class Cut(base):
        """The base class with attention cut as its config says."""

        def __init__(self, config, *arguments, **named):
            super().__init__(config, *arguments, **named)
            cut_layers(self, config.headwise["layers"])
            self.post_init()

    Cut.__name__ = Cut.__qualname__ = f"Headwise{name}"
    return Cut


HeadwiseLlamaModel = _cut_class("LlamaModel")
HeadwiseLlamaForCausalLM = _cut_class("LlamaForCausalLM")
HeadwiseMistralModel = _cut_class("MistralModel")
HeadwiseMistralForCausalLM = _cut_class("MistralForCausalLM")
HeadwiseQwen2Model = _cut_class("Qwen2Model")
HeadwiseQwen2ForCausalLM = _cut_class("Qwen2ForCausalLM")
HeadwiseBertModel = _cut_class("BertModel")
HeadwiseBertForMaskedLM = _cut_class("BertForMaskedLM")
HeadwiseBertForPreTraining = _cut_class("BertForPreTraining")
HeadwiseBertForSequenceClassification = _cut_class("BertForSequenceClassification")
HeadwiseBertForTokenClassification = _cut_class("BertForTokenClassification")
HeadwiseBertForQuestionAnswering = _cut_class("BertForQuestionAnswering")
HeadwiseBertForMultipleChoice = _cut_class("BertForMultipleChoice")
HeadwiseBertForNextSentencePrediction = _cut_class("BertForNextSentencePrediction")

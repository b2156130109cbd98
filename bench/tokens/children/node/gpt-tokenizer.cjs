// npm gpt-tokenizer: JavaScript with a cache of merges.
'use strict';
const serve = require('./protocol.cjs');
const { countTokens } = require('gpt-tokenizer/cjs/encoding/o200k_base');
const ordinary = { disallowedSpecial: new Set() };
serve((text) => countTokens(text, ordinary));

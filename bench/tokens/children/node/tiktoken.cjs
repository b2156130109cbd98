// npm tiktoken: the original in Rust, compiled to WebAssembly.
'use strict';
const serve = require('./protocol.cjs');
const encoding = require('tiktoken').get_encoding('o200k_base');
serve((text) => encoding.encode_ordinary(text).length);

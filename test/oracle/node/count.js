'use strict';
// Counts tokens with the original tokenizer. The encodings are the arguments. A request
// on standard input is its length, the number of an encoding, and texts with their
// lengths in front; the answer on standard output is a count for each text. All numbers
// are 32 bits, little-endian.
const fs = require('node:fs');
const { get_encoding } = require('tiktoken');

const encodings = process.argv.slice(2).map((name) => get_encoding(name));

// read fills a buffer; false at the end of the input.
function read(buffer) {
  let at = 0;
  while (at < buffer.length) {
    const n = fs.readSync(0, buffer, at, buffer.length - at, null);
    if (n === 0) {
      if (at > 0) throw new Error('the input ends inside a request');
      return false;
    }
    at += n;
  }
  return true;
}

function answer(request) {
  const encoding = encodings[request.readUInt32LE(0)];
  const counts = [];
  for (let at = 4; at < request.length; ) {
    const end = at + 4 + request.readUInt32LE(at);
    counts.push(encoding.encode_ordinary(request.toString('utf8', at + 4, end)).length);
    at = end;
  }
  return Buffer.from(Uint32Array.from(counts).buffer);
}

const length = Buffer.alloc(4);
while (read(length)) {
  const request = Buffer.alloc(length.readUInt32LE(0));
  if (!read(request)) throw new Error('the input ends inside a request');
  const counts = answer(request);
  for (let at = 0; at < counts.length; ) at += fs.writeSync(1, counts, at, counts.length - at);
}

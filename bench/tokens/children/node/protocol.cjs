// Counts files on request and times itself: see child.go for the protocol.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');

module.exports = function serve(count) {
  const texts = new Map();
  count('warm');
  process.stdout.write('ready\n');
  readline.createInterface({ input: process.stdin }).on('line', (line) => {
    const files = line.split('\t');
    for (const file of files) {
      if (!texts.has(file)) texts.set(file, fs.readFileSync(file, 'utf8'));
    }
    const answers = files.map((file) => {
      const text = texts.get(file);
      const start = process.hrtime.bigint();
      const tokens = count(text);
      return `${tokens}:${process.hrtime.bigint() - start}`;
    });
    process.stdout.write(answers.join('\t') + '\n');
  });
};

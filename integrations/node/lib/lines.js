// Bytes to lines. A line ends at byte 0x0A and nowhere else (U+2028 is text), and is decoded whole, so that no character is cut.
'use strict';

/** Calls `onLine` with each line, as text, of the chunks that it is given. */
function lineSplitter(onLine) {
  let parts = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const rest = chunk.subarray(start, end);
      const line = parts.length ? Buffer.concat([...parts, rest]) : rest;
      parts = [];
      start = end + 1;
      if (line.length) onLine(line.toString('utf8'));
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  };
}

module.exports = { lineSplitter };

// Is it an image that pi can show? By the first bytes, as pi tells it: jpg, png (no animation), gif, webp, bmp.
export const SNIFF_BYTES = 4100;

function animated(png: Buffer): boolean {
	for (let at = 8; at + 8 <= png.length; at += 12 + png.readUInt32BE(at)) {
		const type = png.toString("latin1", at + 4, at + 8);
		if (type === "acTL" || type === "IDAT") return type === "acTL";
	}
	return false;
}

function isBmp(bytes: Buffer): boolean {
	if (bytes.length < 26) return false;
	const [size, pixels, header] = [bytes.readUInt32LE(2), bytes.readUInt32LE(10), bytes.readUInt32LE(14)];
	if ((size !== 0 && (size < 26 || pixels >= size)) || pixels < 14 + header) return false;
	if (header !== 12 && (header < 40 || header > 124 || bytes.length < 30)) return false;
	const at = header === 12 ? 22 : 26;
	return bytes.readUInt16LE(at) === 1 && [1, 4, 8, 16, 24, 32].includes(bytes.readUInt16LE(at + 2));
}

export function imageType(bytes: Buffer): string | null {
	const starts = (text: string, at = 0) => bytes.toString("latin1", at, at + text.length) === text;
	if (starts("\xff\xd8\xff")) return bytes[3] === 0xf7 ? null : "image/jpeg";
	if (starts("\x89PNG\r\n\x1a\n")) return bytes.length >= 16 && bytes.readUInt32BE(8) === 13 && starts("IHDR", 12) && !animated(bytes) ? "image/png" : null;
	if (starts("GIF87a") || starts("GIF89a")) return "image/gif";
	if (starts("RIFF") && starts("WEBP", 8)) return "image/webp";
	return starts("BM") && isBmp(bytes) ? "image/bmp" : null;
}

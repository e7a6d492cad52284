import { describe, expect, test } from "vitest";
import { isMedia, mediaMarker } from "../../src/transcript/media.js";

const BASE64 = "iVBORw0K".repeat(250);

describe("the marker of a media block", () => {
  test.each([
    [
      "a standard image",
      { type: "image", mimeType: "image/png", data: BASE64 },
      "[image, image/png, 1500 bytes]",
    ],
    [
      "an image of bytes",
      { type: "image", mimeType: "image/png", data: new Uint8Array(7) },
      "[image, image/png, 7 bytes]",
    ],
    [
      "an older image block",
      { type: "image", source_type: "base64", mime_type: "image/png", data: BASE64 },
      "[image, image/png, 1500 bytes]",
    ],
    [
      "an image in a data URL",
      { type: "image_url", image_url: { url: `data:image/png;base64,${BASE64}` } },
      "[image, image/png, 1500 bytes]",
    ],
    [
      "the same as a plain string",
      { type: "image_url", image_url: `data:image/webp;base64,${BASE64}` },
      "[image, image/webp, 1500 bytes]",
    ],
    ["a data URL without a type", { type: "input_image", image_url: "data:,AAAA" }, "[image, 3 bytes]"],
    [
      "an image somewhere else",
      { type: "image", url: "https://example.com/a.png" },
      "[image, https://example.com/a.png]",
    ],
    [
      "an address with secrets: only scheme, host and path are shown",
      { type: "image_url", image_url: { url: "https://me:pass@cdn.example:8443/a/b.png?token=SECRET#part" } },
      "[image, https://cdn.example:8443/a/b.png]",
    ],
    [
      "an object in a bucket",
      { type: "media", fileData: { fileUri: "gs://bucket/a.pdf?X-Goog-Signature=SECRET" } },
      "[file, gs://bucket/a.pdf]",
    ],
    [
      "an address that is not whole",
      { type: "image", url: "//me:pass@cdn.example/a.png?token=SECRET" },
      "[image, //cdn.example/a.png]",
    ],
    [
      "an address within another",
      { type: "image", url: "blob:https://me:pass@cdn.example/a.png?token=SECRET" },
      "[image, blob:https://cdn.example/a.png]",
    ],
    [
      "an Anthropic image",
      { type: "image", source: { type: "base64", media_type: "image/gif", data: BASE64 } },
      "[image, image/gif, 1500 bytes]",
    ],
    [
      "a sound",
      { type: "input_audio", input_audio: { data: BASE64, format: "wav" } },
      "[audio, wav, 1500 bytes]",
    ],
    [
      "a file by its id",
      { type: "file", fileId: "file-7", mimeType: "application/pdf" },
      "[file, application/pdf, id file-7]",
    ],
    [
      "a nested file",
      { type: "file", file: { file_data: `data:application/pdf;base64,${BASE64}` } },
      "[file, 1500 bytes]",
    ],
    [
      "a Bedrock image",
      { type: "image", image: { format: "png", source: { bytes: new Uint8Array(9) } } },
      "[image, png, 9 bytes]",
    ],
    [
      "a Google part without a type",
      { inlineData: { mimeType: "video/mp4", data: BASE64 } },
      "[file, video/mp4, 1500 bytes]",
    ],
    [
      "a text document",
      { type: "text-plain", mimeType: "text/plain", text: "some words" },
      "[text, text/plain, 10 characters]",
    ],
    ["a block with nothing in it", { type: "video" }, "[video]"],
    ["a block of odd fields", { type: "audio", data: 5, url: {}, mimeType: null, source: "x" }, "[audio]"],
  ])("says what it is, its type and its size: %s", (_, block, marker) => {
    expect(mediaMarker(block)).toBe(marker);
    expect(isMedia(block)).toBe(true);
  });

  test("is short whatever the block holds", () => {
    const long = "x".repeat(100_000);
    const marker = mediaMarker({ type: "image", mimeType: long, url: long, fileId: long, data: long });
    expect(marker.length).toBeLessThan(600);
  });

  test("is not for text, calls and data", () => {
    for (const block of [{ type: "text", text: "x" }, { type: "tool_use" }, { data: "x" }, {}])
      expect(isMedia(block)).toBe(false);
  });
});

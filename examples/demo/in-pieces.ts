/** Sends bytes slowly, like a distant server, so that progress is visible. */

/** Milliseconds between two pieces. */
const PIECE_MS = 25

export function inPieces(bytes: Uint8Array, bytesPerSecond: number): ReadableStream<Uint8Array> {
  const pieceBytes = Math.ceil((bytesPerSecond * PIECE_MS) / 1000)
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(PIECE_MS)
      controller.enqueue(bytes.slice(sent, sent + pieceBytes))
      sent += pieceBytes
      if (sent >= bytes.length) controller.close()
    },
  })
}

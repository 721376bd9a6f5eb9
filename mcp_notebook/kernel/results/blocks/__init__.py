"""Content blocks: text, images, audio and documents, made to fit the budget of one result.

A `piece.Piece` holds a block on its way into a result, with its notes and its `Original`. Each kind
of block has its module: texts and JSON in `piece` and `author_blocks`, images
in `images` (by `image_encoding`), sounds in `audio`, documents in `embedded`. `fit` turns all
pieces of a result into the blocks that are sent: images by `image_block`, texts by `truncation`.

Face, used by `results`, `results.tables` and `results.plots`:

- `piece`: `Piece`, `make_text_piece`, `join_texts`.
- `budget`: `Budget`.
- `originals`: `Original`, `FileFormat`, `OriginalSink`.
- `author_blocks`: checks the blocks of authors; `render_image`...
- `images`, `audio`, `embedded`: render one block each. `encoded_text`: pictures in texts.
- `fit.fit_pieces`: the last step of a conversion.
- `truncation`: `LINK`, the characters that a link takes in a result.

Threads: everything runs on the thread of the call; the content of an original is made on the thread
of the client's read.

Left to other rooms: which value becomes which block (`results.values`), keeping originals (`link`).
"""
